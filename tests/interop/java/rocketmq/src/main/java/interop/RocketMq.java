package interop;

import static interop.Story.equal;
import static interop.Story.refused;
import static interop.Story.step;

import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.rocketmq.schema.registry.client.SchemaRegistryClient;
import org.apache.rocketmq.schema.registry.client.SchemaRegistryClientFactory;
import org.apache.rocketmq.schema.registry.client.exceptions.RestClientException;
import org.apache.rocketmq.schema.registry.common.dto.GetSchemaResponse;
import org.apache.rocketmq.schema.registry.common.dto.RegisterSchemaRequest;
import org.apache.rocketmq.schema.registry.common.dto.SchemaRecordDto;
import org.apache.rocketmq.schema.registry.common.dto.SubjectDto;
import org.apache.rocketmq.schema.registry.common.dto.UpdateSchemaRequest;
import org.apache.rocketmq.schema.registry.common.model.Compatibility;
import org.apache.rocketmq.schema.registry.common.model.SchemaType;

/** RocketMQ's client and its serializers. Arguments: the URL without and, for a client with headers, with the prefix. */
public final class RocketMq {
  static final Schema ONE = SchemaBuilder.record("Order").namespace("shop").fields().requiredInt("amount").endRecord();
  static final Schema TWO = SchemaBuilder.record("Order").namespace("shop").fields()
      .requiredInt("amount").name("currency").type().stringType().stringDefault("EUR").endRecord();
  private static final Schema BAD =
      SchemaBuilder.record("Order").namespace("shop").fields().requiredString("amount").endRecord();
  private static final int EXISTS = 40401;
  private static final int NOT_FOUND = 40402;
  private static final int INCOMPATIBLE = 40901;
  private static final long VERSION_BITS = 0x3FFF;
  private static final String CLUSTER = "cluster";
  private static final String TENANT = "tenant";

  private final SchemaRegistryClient client;

  private RocketMq(SchemaRegistryClient client) {
    this.client = client;
  }

  public static void main(String[] arguments) throws Exception {
    var plain = SchemaRegistryClientFactory.newClient(arguments[0], null);
    new RocketMq(plain).tell();
    new Messages(plain).tell();
    step("with headers");
    var headers = Map.of("Content-Type", "application/json", "X-Request-Id", "of-mine");
    new RocketMq(SchemaRegistryClientFactory.newClient(arguments[1], headers)).tell();
  }

  private void tell() throws Exception {
    registered();
    read();
    bound();
    kinds();
    deleted();
  }

  private void registered() throws Exception {
    step("register and evolve");
    var first = client.registerSchema(CLUSTER, TENANT, "orders", "order", avro(ONE));
    equal("version", 1L, first.getVersion());
    equal("version in the record's id", 1L, first.getRecordId() & VERSION_BITS);
    code("the same name", EXISTS, () -> client.registerSchema(CLUSTER, TENANT, "others", "order", avro(ONE)));
    var second = client.updateSchema(CLUSTER, TENANT, "orders", "order", update(TWO));
    equal("version", 2L, second.getVersion());
    equal("the same schema", first.getRecordId() & ~VERSION_BITS, second.getRecordId() & ~VERSION_BITS);
    code("the same again", INCOMPATIBLE, () -> client.updateSchema(CLUSTER, TENANT, "orders", "order", update(TWO)));
    code("incompatible", INCOMPATIBLE, () -> client.updateSchema(CLUSTER, TENANT, "orders", "order", update(BAD)));
    code("unknown", NOT_FOUND, () -> client.updateSchema(CLUSTER, TENANT, "orders", "nothing", update(TWO)));
  }

  private void read() throws Exception {
    step("read");
    var second = client.getSchemaBySubject(CLUSTER, TENANT, "orders");
    equal("schema", TWO, new Schema.Parser().parse(second.getIdl()));
    equal("names", List.of("cluster/tenant/orders", "tenant/order"),
        List.of(second.getSubjectFullName(), second.getSchemaFullName()));
    equal("type", SchemaType.AVRO, second.getType());
    var first = client.getSchemaBySubjectAndVersion(CLUSTER, TENANT, "orders", 1);
    equal("by version", ONE, new Schema.Parser().parse(first.getIdl()));
    equal("by record", first, client.getSchemaByRecordId(CLUSTER, TENANT, "orders", first.getRecordId()));
    var spaced = ONE.toString(true);
    equal("by its text", first, client.getTargetSchema(CLUSTER, TENANT, "orders", spaced));
    refused("a text that is not there", RestClientException.class,
        () -> client.getTargetSchema(CLUSTER, TENANT, "orders", BAD.toString()));
    equal("subjects", List.of("orders"), client.getSubjectsByTenant(CLUSTER, TENANT));
    equal("tenants", true, client.getAllTenants(CLUSTER).contains(TENANT));
    refused("no such subject", RestClientException.class, () -> client.getSchemaBySubject(CLUSTER, TENANT, "none"));
  }

  private void bound() throws Exception {
    step("another subject takes a version, the first one stays");
    var three = SchemaBuilder.record("Order").namespace("shop").fields()
        .requiredInt("amount").optionalString("note").endRecord();
    var third = client.updateSchema(CLUSTER, TENANT, "audit", "order", update(three));
    equal("of the other", third.getRecordId(), client.getSchemaBySubject(CLUSTER, TENANT, "audit").getRecordId());
    equal("of the first", 2L, client.getSchemaBySubject(CLUSTER, TENANT, "orders").getVersion());
    var records = client.getSchemaListBySubject(CLUSTER, TENANT, "audit");
    equal("versions", List.of(1L, 2L, 3L), records.stream().map(SchemaRecordDto::getVersion).toList());
    equal("bound", List.of(List.of(), List.of("orders"), List.of("audit")), records.stream()
        .map(row -> row.getSubjects().stream().map(SubjectDto::getSubject).toList()).toList());
    equal("subjects", List.of("audit", "orders"), client.getSubjectsByTenant(CLUSTER, TENANT).stream().sorted().toList());
  }

  private void kinds() throws Exception {
    step("every type, in the default place");
    var texts = Map.of(
        SchemaType.PROTOBUF, "syntax = \"proto3\"; message P { int32 a = 1; }",
        SchemaType.THRIFT, "struct T { 1: i32 a }",
        SchemaType.JSON, "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}}}",
        SchemaType.TEXT, "whatever",
        SchemaType.BINLOG, "binlog");
    for (var type : texts.keySet()) {
      var name = type.name().toLowerCase();
      var request = new RegisterSchemaRequest(texts.get(type), type, "ann", Compatibility.NONE, "");
      equal(name, 1L, client.registerSchema(name, name, request).getVersion());
      GetSchemaResponse found = client.getSchemaBySubject(name);
      equal(name, List.of(texts.get(type), type), List.of(found.getIdl(), found.getType()));
      equal(name, found, client.getSchemaBySubjectAndVersion(name, 1));
      equal(name, found, client.getSchemaByRecordId(name, found.getRecordId()));
      client.deleteSchema("default", "default", name);
    }
  }

  private void deleted() throws Exception {
    step("delete");
    var record = client.getSchemaBySubjectAndVersion(CLUSTER, TENANT, "orders", 3).getRecordId();
    equal("a version", record, client.deleteSchema(CLUSTER, TENANT, "orders", 3).getRecordId());
    refused("that version", RestClientException.class,
        () -> client.getSchemaBySubjectAndVersion(CLUSTER, TENANT, "orders", 3));
    equal("bound to what is left", 2L, client.getSchemaBySubject(CLUSTER, TENANT, "audit").getVersion());
    client.deleteSchema(CLUSTER, TENANT, "orders");
    for (var subject : List.of("orders", "audit")) {
      refused(subject, RestClientException.class, () -> client.getSchemaBySubject(CLUSTER, TENANT, subject));
    }
    code("deleted before", NOT_FOUND, () -> client.deleteSchema(CLUSTER, TENANT, "orders"));
  }

  static RegisterSchemaRequest avro(Schema schema) {
    return new RegisterSchemaRequest(schema.toString(), SchemaType.AVRO, "ann", Compatibility.BACKWARD, "orders");
  }

  static UpdateSchemaRequest update(Schema schema) {
    return new UpdateSchemaRequest(schema.toString(), "", "");
  }

  private static void code(String what, int code, Story.Step step) {
    equal("code", code, refused(what, RestClientException.class, step).getStatus());
  }
}
