package interop;

import static interop.Story.equal;
import static interop.Story.refused;
import static interop.Story.step;

import io.confluent.kafka.serializers.subject.RecordNameStrategy;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.util.Utf8;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.SerializationException;

/** Avro records: registered as they are written, evolved, read with either schema; classes, other subjects' names. */
final class AvroRecords {
  private static final Schema ONE =
      SchemaBuilder.record("Order").namespace("shop").fields().requiredInt("amount").endRecord();
  private static final Schema TWO = SchemaBuilder.record("Order").namespace("shop").fields()
      .requiredInt("amount").name("currency").type().stringType().stringDefault("EUR").endRecord();
  private static final Schema BAD =
      SchemaBuilder.record("Order").namespace("shop").fields().requiredString("amount").endRecord();

  private final Serdes serdes;

  AvroRecords(Serdes serdes) {
    this.serdes = serdes;
  }

  void tell() throws Exception {
    step("register and evolve");
    var first = serdes.write("orders", order(ONE, 42), Map.of());
    var second = serdes.write("orders", order(TWO, 43), Map.of());
    var client = serdes.client();
    equal("versions", List.of(1, 2), client.getAllVersions("orders-value"));
    equal("id in front", client.getSchemaMetadata("orders-value", 2).getId(), ByteBuffer.wrap(second, 1, 4).getInt());
    var bad = new GenericData.Record(BAD);
    bad.put("amount", "many");
    refused("incompatible", InvalidConfigurationException.class, () -> serdes.write("orders", bad, Map.of()));
    refused("not registered", SerializationException.class,
        () -> serdes.write("others", order(ONE, 1), Map.of("auto.register.schemas", false)));
    step("read");
    equal("as written", order(ONE, 42), serdes.read("orders", first, Map.of()));
    equal("the first with the second", "EUR", serdes.read("orders", first, TWO).get("currency").toString());
    equal("the second with the first", 43, serdes.read("orders", second, ONE).get("amount"));
    latest();
    classes();
    names();
    serdes.delete("orders-value");
    refused("an id nobody knows", SerializationException.class, () -> serdes.read("orders", second, Map.of()));
  }

  private void latest() {
    step("written with the latest version, whatever the record has");
    var settings = Map.of("auto.register.schemas", false, "use.latest.version", true, "latest.compatibility.strict", false);
    var event = serdes.write("orders", order(TWO, 44), settings);
    equal("read", order(TWO, 44), serdes.read("orders", event, Map.of()));
    var read = (GenericRecord) serdes.read("orders", event, Map.of("use.latest.version", true));
    equal("read with the latest", "USD", read.get("currency").toString());
  }

  private void classes() throws Exception {
    step("a class whose schema is derived");
    var settings = Map.of("schema.reflection", true);
    var sent = new Payment();
    sent.reference = "r-1";
    var read = (Payment) serdes.read("payments", serdes.write("payments", sent, settings), settings);
    equal("reference", "r-1", read.reference);
    serdes.delete("payments-value");
  }

  private void names() throws Exception {
    step("a subject named after the record");
    var settings = Map.of("value.subject.name.strategy", RecordNameStrategy.class.getName());
    var event = serdes.write("anywhere", order(ONE, 5), settings);
    equal("read", order(ONE, 5), serdes.read("anywhere", event, settings));
    serdes.delete("shop.Order");
  }

  private static GenericRecord order(Schema schema, int amount) {
    var record = new GenericData.Record(schema);
    record.put("amount", amount);
    if (schema == TWO) {
      record.put("currency", new Utf8("USD"));
    }
    return record;
  }

  /** A class of the program's own. */
  public static final class Payment {
    String reference;
  }
}
