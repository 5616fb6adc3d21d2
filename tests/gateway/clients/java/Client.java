// SPDX-License-Identifier: Apache-2.0

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Kafka's own client: reads, and maybe produces, as options.py says of all of them. */
public final class Client {
    private static final int ABORTED = -1;
    private static final int IN_A_TRANSACTION = 3;

    private final Map<String, String> options = new HashMap<>();

    private Client(String[] arguments) {
        for (int at = 0; at < arguments.length; at += 2) {
            options.put(arguments[at].substring(2), arguments[at + 1]);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Client client = new Client(arguments);
        Thread producing = new Thread(client::produce, "producing");
        producing.setDaemon(true);
        if (client.options.containsKey("enough")) {
            producing.start();
        }
        client.read();
    }

    private Properties common() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", options.get("bootstrap"));
        settings.put("metadata.max.age.ms", options.get("refresh-ms"));
        return settings;
    }

    private boolean isThere(String option) {
        return Files.exists(Path.of(options.get(option)));
    }

    private void read() {
        Properties settings = common();
        settings.put("group.id", options.get("group"));
        settings.put("auto.offset.reset", "earliest");
        settings.put("auto.commit.interval.ms", "200");
        settings.put("heartbeat.interval.ms", "300");
        settings.put("isolation.level", options.containsKey("transactional-id") ? "read_committed" : "read_uncommitted");
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(options.get("topic")));
            while (!isThere("over")) {
                for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(100))) {
                    say("read " + each.value());
                }
            }
        }
    }

    private void produce() {
        Properties settings = common();
        settings.put("linger.ms", "0");
        String transactionalId = options.get("transactional-id");
        if (transactionalId != null) {
            settings.put("transactional.id", transactionalId);
        }
        int count = 0;
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            if (transactionalId != null) {
                producer.initTransactions();
            }
            while (!isThere("enough")) {
                if (transactionalId == null) {
                    send(producer, count++);
                    continue;
                }
                producer.beginTransaction();
                for (int each = 0; each < IN_A_TRANSACTION; each++) {
                    producer.send(record(ABORTED)).get();
                }
                producer.abortTransaction();
                producer.beginTransaction();
                for (int each = 0; each < IN_A_TRANSACTION; each++) {
                    send(producer, count++);
                }
                producer.commitTransaction();
            }
        } catch (Exception failed) {
            failed.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
        say("produced " + count);
    }

    private void send(KafkaProducer<String, String> producer, int number) throws Exception {
        producer.send(record(number)).get();
        Thread.sleep(Long.parseLong(options.get("pause-ms")));
    }

    private ProducerRecord<String, String> record(int number) {
        return new ProducerRecord<>(options.get("topic"), Integer.toString(number));
    }

    private static void say(String line) {
        byte[] bytes = (line + "\n").getBytes(StandardCharsets.UTF_8);
        System.out.write(bytes, 0, bytes.length);
        System.out.flush();
    }
}
