// SPDX-License-Identifier: Apache-2.0

import io.kroxylicious.proxy.KafkaProxy;
import io.kroxylicious.proxy.config.ConfigParser;
import io.kroxylicious.proxy.internal.config.Features;
import java.nio.file.Files;
import java.nio.file.Path;

/** Runs the proxy that a file describes. */
public final class Main {
    public static void main(String[] arguments) throws Exception {
        ConfigParser parser = new ConfigParser();
        String text = Files.readString(Path.of(arguments[0]));
        KafkaProxy proxy = new KafkaProxy(parser, parser.parseConfiguration(text), Features.defaultFeatures());
        proxy.startup();
        proxy.block();
    }
}
