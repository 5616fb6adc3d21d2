// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.internals.Exit;
import org.apache.kafka.tools.ConfigCommand;
import org.apache.kafka.tools.GetOffsetShell;
import org.apache.kafka.tools.GroupsCommand;
import org.apache.kafka.tools.TopicCommand;
import org.apache.kafka.tools.consumer.group.ConsumerGroupCommand;

/**
 * Runs Kafka's own Java code for tests, many commands in one JVM, because a JVM takes a second to start.
 *
 * One command a line on standard input: words in base64, the first one says what to do. One line back for each:
 * the exit status, what was printed, and what was printed as an error, the latter two in base64.
 */
public final class Shell {
    private static final int PARTITIONS = 12;
    private static final Duration A_WHILE = Duration.ofSeconds(40);

    /** Instead of the end of the JVM, which is what the tool would do. */
    private static final class Exited extends RuntimeException {
        final int status;

        Exited(int status) {
            super(null, null, false, false);
            this.status = status;
        }
    }

    public static void main(String[] ignored) throws Exception {
        PrintStream replies = System.out;
        Exit.setExitProcedure((status, message) -> {
            if (message != null) {
                System.err.println(message);
            }
            throw new Exited(status);
        });
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            List<String> words = new ArrayList<>();
            for (String word : line.split(" ")) {
                words.add(new String(Base64.getDecoder().decode(word), StandardCharsets.UTF_8));
            }
            replies.println(reply(words));
            replies.flush();
        }
    }

    private static String reply(List<String> words) {
        ByteArrayOutputStream output = new ByteArrayOutputStream();
        ByteArrayOutputStream errors = new ByteArrayOutputStream();
        PrintStream realOutput = System.out;
        PrintStream realErrors = System.err;
        System.setOut(new PrintStream(output, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(errors, true, StandardCharsets.UTF_8));
        int status = 0;
        try {
            String[] arguments = words.subList(1, words.size()).toArray(new String[0]);
            switch (words.get(0)) {
                case "groups" -> ConsumerGroupCommand.main(arguments);
                case "produce" -> produce(arguments[0], arguments[1], arguments.length > 2 ? arguments[2] : "");
                case "consume" -> consume(arguments[0], arguments[1], arguments[2]);
                case "configs" -> ConfigCommand.main(arguments);
                case "topics" -> TopicCommand.main(arguments);
                case "ends" -> GetOffsetShell.main(arguments);
                case "all-groups" -> GroupsCommand.main(arguments);
                case "join-new" -> joinNew(arguments[0], arguments[1]);
                case "start" -> start(arguments[0], arguments[1], arguments[2]);
                default -> throw new IllegalArgumentException(words.get(0));
            }
        } catch (Exited exited) {
            status = exited.status;
        } catch (Throwable failure) {
            failure.printStackTrace();
            status = 70;
        } finally {
            System.setOut(realOutput);
            System.setErr(realErrors);
        }
        Base64.Encoder encoder = Base64.getEncoder();
        return status + " " + encoder.encodeToString(output.toByteArray())
            + " " + encoder.encodeToString(errors.toByteArray());
    }

    /** A producer with its defaults, or with a transactional id, sends one record; prints the error that it gets. */
    private static void produce(String bootstrap, String topic, String transactionalId) throws InterruptedException {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        if (!transactionalId.isEmpty()) {
            settings.put("transactional.id", transactionalId);
        }
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            if (!transactionalId.isEmpty()) {
                producer.initTransactions();
            }
            producer.send(new ProducerRecord<>(topic, new byte[] {1})).get();
        } catch (ExecutionException failed) {
            System.out.println(failed.getCause());
        } catch (KafkaException failed) {
            System.out.println(failed);
        }
    }

    /** Two consumers share a topic, commit 500 + partition, one closes, the other takes all and reads everything back. */
    private static void consume(String bootstrap, String group, String topic) {
        KafkaConsumer<byte[], byte[]> first = consumer(bootstrap, group, topic, "java-first");
        KafkaConsumer<byte[], byte[]> second = consumer(bootstrap, group, topic, "java-second");
        try {
            pollUntilHeld(PARTITIONS / 2, first, second);
            for (KafkaConsumer<byte[], byte[]> each : List.of(first, second)) {
                System.out.println("assigned " + numbers(each.assignment()));
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                each.assignment().forEach(p -> offsets.put(p, new OffsetAndMetadata(500 + p.partition(), "from java")));
                each.commitSync(offsets);
            }
            second.close();
            pollUntilHeld(PARTITIONS, first);
            System.out.println("assigned " + numbers(first.assignment()));
            Map<Integer, String> committed = new TreeMap<>();
            first.committed(first.assignment()).forEach((p, o) -> committed.put(p.partition(), o.offset() + " " + o.metadata()));
            committed.forEach((partition, found) -> System.out.println("committed " + partition + " " + found));
        } finally {
            second.close();
            first.close();
        }
    }

    /** A consumer of the protocol of KIP-848 polls; prints the error that it gets. */
    private static void joinNew(String bootstrap, String topic) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", "new-java");
        settings.put("group.protocol", "consumer");
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(topic));
            consumer.poll(A_WHILE);
        } catch (KafkaException failed) {
            System.out.println(failed);
        }
    }

    /** Where a consumer without a committed offset starts, by partition; and what it is told of times. */
    private static void start(String bootstrap, String topic, String reset) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", "start-" + reset);
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", reset);
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            Map<TopicPartition, Long> aMinuteAgo = new HashMap<>();
            consumer.partitionsFor(topic).forEach(each -> aMinuteAgo.put(
                new TopicPartition(topic, each.partition()), System.currentTimeMillis() - 60_000));
            consumer.assign(aMinuteAgo.keySet());
            Map<Integer, Long> starts = new TreeMap<>();
            aMinuteAgo.keySet().forEach(each -> starts.put(each.partition(), consumer.position(each, A_WHILE)));
            starts.forEach((partition, offset) -> System.out.println(partition + " " + offset));
            if (consumer.offsetsForTimes(aMinuteAgo).values().stream().anyMatch(each -> each != null)) {
                throw new IllegalStateException("an offset for a time that nobody knows");
            }
        }
    }

    private static KafkaConsumer<byte[], byte[]> consumer(String bootstrap, String group, String topic, String name) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", group);
        settings.put("group.protocol", "classic");
        settings.put("client.id", name);
        settings.put("enable.auto.commit", "false");
        settings.put("session.timeout.ms", "60000");
        settings.put("heartbeat.interval.ms", "300");
        KafkaConsumer<byte[], byte[]> made =
            new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        made.subscribe(List.of(topic));
        return made;
    }

    @SafeVarargs
    private static void pollUntilHeld(int each, KafkaConsumer<byte[], byte[]>... consumers) {
        long deadline = System.nanoTime() + A_WHILE.toNanos();
        while (!Arrays.stream(consumers).allMatch(consumer -> consumer.assignment().size() == each)) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("no such assignment within " + A_WHILE);
            }
            for (KafkaConsumer<byte[], byte[]> consumer : consumers) {
                consumer.poll(Duration.ofMillis(50));
            }
        }
    }

    private static String numbers(Set<TopicPartition> partitions) {
        TreeSet<Integer> sorted = new TreeSet<>();
        partitions.forEach(partition -> sorted.add(partition.partition()));
        return sorted.toString().replaceAll("[^0-9,]", "");
    }
}
