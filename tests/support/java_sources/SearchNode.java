import java.util.Collections;
import java.util.concurrent.CountDownLatch;
import java.util.function.Supplier;
import org.opensearch.common.settings.Settings;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/**
 * One OpenSearch node for tests: `SearchNode HOME HTTP_PORT TRANSPORT_PORT`, ends with its process.
 *
 * Plain enough for Janino, the compiler that Spark brings: no lambda, no inferred type arguments.
 */
public final class SearchNode extends Node {
    private SearchNode(Settings settings) {
        super(
            InternalSettingsPreparer.prepareEnvironment(settings, Collections.EMPTY_MAP, null, new Name()),
            Collections.singletonList(Netty4Plugin.class),
            false);
    }

    private static final class Name implements Supplier {
        public Object get() {
            return "test";
        }
    }

    public static void main(String[] arguments) throws Exception {
        Settings.Builder settings = Settings.builder();
        settings.put("path.home", arguments[0]);
        settings.put("http.port", arguments[1]);
        settings.put("transport.port", arguments[2]);
        settings.put("cluster.name", "test");
        settings.put("node.name", "test");
        settings.put("network.host", "127.0.0.1");
        settings.put("discovery.type", "single-node");
        settings.put("http.type", "netty4");
        settings.put("transport.type", "netty4");
        settings.put("cluster.routing.allocation.disk.threshold_enabled", "false");
        new SearchNode(settings.build()).start();
        new CountDownLatch(1).await();
    }
}
