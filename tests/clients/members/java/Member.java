// SPDX-License-Identifier: Apache-2.0

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A group member on Kafka's own client; protocol.py says how it talks with its test. */
public final class Member implements ConsumerRebalanceListener {
    private static final Duration POLL = Duration.ofMillis(50);
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Map<String, String> options = new HashMap<>();
    private final ConcurrentLinkedQueue<JsonNode> commands = new ConcurrentLinkedQueue<>();

    private Member(String[] arguments) {
        for (String argument : arguments) {
            String[] parts = argument.substring(2).split("=", 2);
            options.put(parts[0], parts[1]);
        }
    }

    public static void main(String[] arguments) throws Exception {
        new Member(arguments).run();
    }

    private void run() throws Exception {
        Thread reading = new Thread(this::read, "reading");
        reading.setDaemon(true);
        reading.start();
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings(), new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(options.get("topic")), this);
            boolean goesOn = true;
            while (goesOn) {
                goesOn = step(consumer);
            }
        }
        emit(event("left"));
    }

    private boolean step(KafkaConsumer<byte[], byte[]> consumer) throws InterruptedException {
        JsonNode command = commands.poll();
        if (command != null && command.get("command").asText().equals("leave")) {
            return false;
        }
        try {
            if (command != null) {
                obey(consumer, command);
            }
            consumer.poll(POLL);
        } catch (FencedInstanceIdException fenced) {
            emit(event("fenced").put("error", fenced.toString()));
            Thread.sleep(POLL.toMillis());  // each poll says so, at once
        } catch (KafkaException refused) {
            emit(event("refused").put("error", refused.toString()));
        }
        return true;
    }

    private void obey(KafkaConsumer<byte[], byte[]> consumer, JsonNode command) {
        String topic = options.get("topic");
        if (command.get("command").asText().equals("commit")) {
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            command.get("offsets").fields().forEachRemaining(each -> offsets.put(
                new TopicPartition(topic, Integer.parseInt(each.getKey())),
                new OffsetAndMetadata(each.getValue().asLong())));
            consumer.commitSync(offsets);
            emit(event("committed").set("offsets", command.get("offsets")));
            return;
        }
        Set<TopicPartition> asked = new HashSet<>();
        command.get("partitions").forEach(each -> asked.add(new TopicPartition(topic, each.asInt())));
        ObjectNode offsets = JSON.createObjectNode();
        consumer.committed(asked).forEach((partition, found) -> {
            if (found != null) {
                offsets.put(Integer.toString(partition.partition()), found.offset());
            }
        });
        emit(event("offsets").set("offsets", offsets));
    }

    private Properties settings() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", options.get("bootstrap"));
        settings.put("group.id", options.get("group"));
        settings.put("client.id", options.get("client-id"));
        settings.put("partition.assignment.strategy", options.get("assignor").equals("range")
            ? "org.apache.kafka.clients.consumer.RangeAssignor"
            : "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");
        settings.put("session.timeout.ms", options.get("session-timeout-ms"));
        settings.put("heartbeat.interval.ms", options.get("heartbeat-interval-ms"));
        settings.put("enable.auto.commit", "false");
        settings.put("metadata.recovery.strategy", System.getProperty("metadata.recovery.strategy", "rebootstrap"));
        settings.put("auto.offset.reset", "earliest");
        if (options.containsKey("instance-id")) {
            settings.put("group.instance.id", options.get("instance-id"));
        }
        return settings;
    }

    private void read() {
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                commands.add(JSON.readTree(line));
            }
        } catch (IOException gone) {
            System.err.println(gone);
        }
        commands.add(JSON.createObjectNode().put("command", "leave"));
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        emit("assigned", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        emit("revoked", partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        emit("lost", partitions);
    }

    private static void emit(String name, Collection<TopicPartition> partitions) {
        ObjectNode event = event(name);
        TreeSet<Integer> numbers = new TreeSet<>();
        partitions.forEach(each -> numbers.add(each.partition()));
        numbers.forEach(event.putArray("partitions")::add);
        emit(event);
    }

    private static ObjectNode event(String name) {
        return JSON.createObjectNode().put("event", name);
    }

    private static void emit(JsonNode event) {
        System.out.println(event);
    }
}
