// SPDX-License-Identifier: Apache-2.0

import java.util.List;
import java.util.Locale;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * Kafka's own authorizer, but that it throws when user "broken-group" is to do something with a group, "broken-topic"
 * with a topic and "broken-cluster" with the cluster, as authorizers do whose policy server is away.
 */
public class BrokenAuthorizer extends StandardAuthorizer {
    @Override
    public List<AuthorizationResult> authorize(AuthorizableRequestContext context, List<Action> actions) {
        String user = context.principal().getName();
        for (Action action : actions) {
            String type = action.resourcePattern().resourceType().name().toLowerCase(Locale.ROOT);
            if (user.equals("broken-" + type)) {
                throw new IllegalStateException("no policy for " + user);
            }
        }
        return super.authorize(context, actions);
    }
}
