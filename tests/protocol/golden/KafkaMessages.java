// SPDX-License-Identifier: Apache-2.0
// Reads messages with Kafka's own classes. In: lines of "api key, request|response, version, hex"; out, for each:
// a line of the message as Kafka's JSON, a tab, and the hex of what Kafka writes for it.

import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;

public class KafkaMessages {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder out = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", -1);
            ApiKeys api = ApiKeys.forId(Integer.parseInt(words[0]));
            boolean request = words[1].equals("request");
            short version = Short.parseShort(words[2]);
            ApiMessage message = request ? api.messageType.newRequest() : api.messageType.newResponse();
            message.read(new ByteBufferAccessor(ByteBuffer.wrap(HexFormat.of().parseHex(words[3]))), version);
            ByteBuffer written = MessageUtil.toByteBufferAccessor(message, version).buffer();
            byte[] bytes = new byte[written.remaining()];
            written.get(bytes);
            out.append(json(message, version)).append('\t').append(HexFormat.of().formatHex(bytes)).append('\n');
        }
        System.out.write(out.toString().getBytes(StandardCharsets.UTF_8));
        System.out.flush();
    }

    private static JsonNode json(ApiMessage message, short version) throws Exception {
        Class<?> converter = Class.forName(message.getClass().getName() + "JsonConverter");
        Method write = converter.getMethod("write", message.getClass(), short.class);
        return (JsonNode) write.invoke(null, message, version);
    }
}
