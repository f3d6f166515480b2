import java.time.Duration;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/** Counts the words of a topic, each exactly once: "words" to "counts" with a store that has a changelog.
 *  Written without lambdas and generics, so that a small compiler can read it. */
public class WordCount {
    public static class Count implements Processor {
        private ProcessorContext context;
        private KeyValueStore store;

        public void init(ProcessorContext given) {
            context = given;
            store = (KeyValueStore) given.getStateStore("counted");
        }

        public void process(Record record) {
            Object before = store.get(record.value());
            Long now = Long.valueOf(before == null ? 1L : ((Long) before).longValue() + 1L);
            store.put(record.value(), now);
            context.forward(new Record(record.value(), now.toString(), record.timestamp()));
        }

        public void close() {
        }
    }

    public static class Supplier implements ProcessorSupplier {
        public Processor get() {
            return new Count();
        }

        public Set stores() {
            return null;
        }
    }

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.put("application.id", "word-count");
        properties.put("bootstrap.servers", arguments[0]);
        properties.put("state.dir", arguments[1]);
        properties.put("processing.guarantee", "exactly_once_v2");
        properties.put("commit.interval.ms", "100");
        properties.put("replication.factor", "1");
        properties.put("consumer.session.timeout.ms", "6000");
        properties.put("consumer.heartbeat.interval.ms", "1000");
        properties.put("main.consumer.auto.offset.reset", "earliest");
        Topology topology = new Topology();
        topology.addSource("source", Serdes.String().deserializer(), Serdes.String().deserializer(), new String[] {"words"});
        topology.addProcessor("count", new Supplier(), new String[] {"source"});
        topology.addStateStore(
            Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("counted"), Serdes.String(), Serdes.Long()),
            new String[] {"count"});
        topology.addSink("sink", "counts", Serdes.String().serializer(), Serdes.String().serializer(), new String[] {"count"});
        KafkaStreams streams = new KafkaStreams(topology, properties);
        streams.start();
        while (streams.state() != KafkaStreams.State.ERROR) {
            Thread.sleep(200);
        }
        streams.close(Duration.ofSeconds(1));
        System.exit(3);
    }
}
