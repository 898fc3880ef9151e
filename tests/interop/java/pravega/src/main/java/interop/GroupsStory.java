package interop;

import static interop.Story.equal;
import static interop.Story.refused;
import static interop.Story.step;

import io.pravega.schemaregistry.client.SchemaRegistryClient;
import io.pravega.schemaregistry.client.exceptions.RegistryExceptions.BadArgumentException;
import io.pravega.schemaregistry.client.exceptions.RegistryExceptions.ResourceNotFoundException;
import io.pravega.schemaregistry.contract.data.Compatibility;
import io.pravega.schemaregistry.contract.data.GroupProperties;
import io.pravega.schemaregistry.contract.data.SchemaInfo;
import io.pravega.schemaregistry.contract.data.SerializationFormat;
import io.pravega.schemaregistry.serializer.avro.schemas.AvroSchema;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Groups: their properties and policies, listing in pages, namespaces. */
final class GroupsStory {
  private static final int MANY = 205;
  private static final String GROUP = "a group/with %2F & more";

  private final SchemaRegistryClient client;
  private final SchemaRegistryClient elsewhere;

  GroupsStory(SchemaRegistryClient client, SchemaRegistryClient elsewhere) {
    this.client = client;
    this.elsewhere = elsewhere;
  }

  void tell() {
    step("a group and its properties");
    var properties = Pravega.properties(SerializationFormat.Avro, Compatibility.backward(), true);
    equal("added", true, client.addGroup(GROUP, properties));
    equal("added again", false,
        client.addGroup(GROUP, Pravega.properties(SerializationFormat.Json, Compatibility.denyAll(), false)));
    equal("properties", properties, client.getGroupProperties(GROUP));
    refused("no such group", ResourceNotFoundException.class, () -> client.getGroupProperties("none"));
    refused("rules for what has none", BadArgumentException.class, () -> client.addGroup("csv",
        Pravega.properties(SerializationFormat.custom("csv"), Compatibility.backward(), true)));
    policies();
    namespaces();
    pages();
    client.removeGroup(GROUP);
    client.removeGroup(GROUP);
    refused("a group that was removed", ResourceNotFoundException.class, () -> client.getGroupProperties(GROUP));
  }

  private void policies() {
    step("every policy comes back as it was sent");
    SchemaInfo schema = AvroSchema.ofRecord(AvroStory.ONE).getSchemaInfo();
    var first = client.addSchema(GROUP, schema);
    var second = client.addSchema(GROUP, AvroSchema.ofRecord(AvroStory.TWO).getSchemaInfo());
    var policies = List.of(Compatibility.allowAny(), Compatibility.denyAll(), Compatibility.backwardTransitive(),
        Compatibility.forward(), Compatibility.forwardTransitive(), Compatibility.full(),
        Compatibility.fullTransitive(), Compatibility.backwardTill(first), Compatibility.forwardTill(second),
        Compatibility.backwardTillAndForwardTill(first, second), Compatibility.backwardOneAndForwardTill(second),
        Compatibility.backwardTillAndForwardOne(first), Compatibility.backward());
    var before = Compatibility.backward();
    for (var policy : policies) {
      equal("changed", true, client.updateCompatibility(GROUP, policy, before));
      equal("policy", policy, client.getGroupProperties(GROUP).getCompatibility());
      before = policy;
    }
    equal("another was before", false,
        client.updateCompatibility(GROUP, Compatibility.full(), Compatibility.denyAll()));
    equal("whatever was before", true, client.updateCompatibility(GROUP, Compatibility.full(), null));
    refused("no such group", ResourceNotFoundException.class,
        () -> client.updateCompatibility("none", Compatibility.full(), null));
  }

  private void namespaces() {
    step("a namespace of its own");
    equal("namespace", "tenant/ü", elsewhere.getNamespace());
    equal("groups", Set.of(), names(elsewhere));
    var properties = Pravega.properties(SerializationFormat.Json, Compatibility.allowAny(), false);
    equal("added", true, elsewhere.addGroup(GROUP, properties));
    equal("properties", properties, elsewhere.getGroupProperties(GROUP));
    equal("groups", Set.of(GROUP), names(elsewhere));
    elsewhere.removeGroup(GROUP);
    equal("here", SerializationFormat.Avro, client.getGroupProperties(GROUP).getSerializationFormat());
  }

  private void pages() {
    step("more groups than a page has");
    var properties = Pravega.properties(SerializationFormat.Any, Compatibility.allowAny(), true);
    var before = names(client);
    var expected = new HashSet<>(before);
    for (int number = 0; number < MANY; number++) {
      client.addGroup("group-" + number, properties);
      expected.add("group-" + number);
    }
    equal("all of them, once", expected, names(client));
    expected.stream().filter(name -> !before.contains(name)).forEach(client::removeGroup);
    equal("as before", before, names(client));
  }

  private static Set<String> names(SchemaRegistryClient client) {
    var names = new ArrayList<String>();
    Map<String, GroupProperties> found = new HashMap<>();
    client.listGroups().forEachRemaining(group -> {
      names.add(group.getKey());
      found.put(group.getKey(), group.getValue());
    });
    equal("each once", found.size(), names.size());
    return found.keySet();
  }
}
