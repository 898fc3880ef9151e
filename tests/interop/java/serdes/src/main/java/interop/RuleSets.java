package interop;

import static interop.Story.equal;
import static interop.Story.refused;
import static interop.Story.step;

import io.confluent.kafka.schemaregistry.avro.AvroSchema;
import io.confluent.kafka.schemaregistry.client.rest.entities.Config;
import io.confluent.kafka.schemaregistry.client.rest.entities.Metadata;
import io.confluent.kafka.schemaregistry.client.rest.entities.Rule;
import io.confluent.kafka.schemaregistry.client.rest.entities.RuleKind;
import io.confluent.kafka.schemaregistry.client.rest.entities.RuleMode;
import io.confluent.kafka.schemaregistry.client.rest.entities.RuleSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.kafka.common.errors.SerializationException;

/** Rules that the registry keeps and the serializers carry out: conditions, transformations, migrations. */
final class RuleSets {
  private static final Map<String, Object> REGISTERED =
      Map.of("auto.register.schemas", false, "use.latest.version", true);
  private static final Schema PERSON =
      SchemaBuilder.record("Person").fields().requiredString("name").requiredInt("age").endRecord();
  private static final Schema RENAMED =
      SchemaBuilder.record("Person").fields().requiredString("fullName").requiredInt("age").endRecord();

  private final Serdes serdes;

  RuleSets(Serdes serdes) {
    this.serdes = serdes;
  }

  void tell() throws Exception {
    domain();
    migration();
  }

  private void domain() throws Exception {
    step("a condition and a transformation");
    var adult = Serdes.rule("adult", RuleKind.CONDITION, RuleMode.WRITE, "CEL", "message.age >= 18");
    var loud = Serdes.rule(
        "loud", RuleKind.TRANSFORM, RuleMode.WRITE, "CEL_FIELD", "typeName == 'STRING' ; value + '!'");
    var schema = new AvroSchema(PERSON).copy(null, new RuleSet(List.of(), List.of(adult, loud)));
    serdes.client().register("people-value", schema);
    var event = serdes.write("people", person(PERSON, "name", "Ann", 30), REGISTERED);
    equal("transformed", "Ann!", ((GenericRecord) serdes.read("people", event, Map.of())).get("name").toString());
    refused("whom the condition does not take", SerializationException.class,
        () -> serdes.write("people", person(PERSON, "name", "Bob", 3), REGISTERED));
    equal("rules come back", schema.ruleSet(), serdes.client().getSchemaById(id("people-value")).ruleSet());
    serdes.delete("people-value");
  }

  private void migration() throws Exception {
    step("a change that is incompatible but for its migrations");
    var client = serdes.client();
    var config = new Config("BACKWARD");
    config.setCompatibilityGroup("major");
    client.updateConfig("moved-value", config);
    client.register("moved-value", new AvroSchema(PERSON).copy(major("1"), null));
    var up = migrating(RuleMode.UPGRADE, "name", "fullName");
    var down = migrating(RuleMode.DOWNGRADE, "fullName", "name");
    client.register("moved-value", new AvroSchema(RENAMED).copy(major("2"), new RuleSet(List.of(up, down), List.of())));
    var first = serdes.write("moved", person(PERSON, "name", "Ann", 30), at("1"));
    var second = serdes.write("moved", person(RENAMED, "fullName", "Bob", 40), at("2"));
    equal("upgraded", "Ann", ((GenericRecord) serdes.read("moved", first, at("2"))).get("fullName").toString());
    equal("downgraded", "Bob", ((GenericRecord) serdes.read("moved", second, at("1"))).get("name").toString());
    client.deleteConfig("moved-value");
    serdes.delete("moved-value");
  }

  private int id(String subject) throws Exception {
    return serdes.client().getLatestSchemaMetadata(subject).getId();
  }

  private static Metadata major(String number) {
    return new Metadata(Map.of(), Map.of("major", number), Set.of());
  }

  private static Map<String, Object> at(String major) {
    return Map.of("auto.register.schemas", false, "use.latest.with.metadata", "major=" + major,
        "latest.compatibility.strict", false);
  }

  private static Rule migrating(RuleMode mode, String from, String to) {
    var expression = "$merge([$sift($, function($v, $k) {$k != '" + from + "'}), {'" + to + "': $." + from + "}])";
    return Serdes.rule(mode.name(), RuleKind.TRANSFORM, mode, "JSONATA", expression);
  }

  private static GenericRecord person(Schema schema, String field, String name, int age) {
    var record = new GenericData.Record(schema);
    record.put(field, name);
    record.put("age", age);
    return record;
  }
}
