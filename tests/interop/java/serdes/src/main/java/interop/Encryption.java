package interop;

import static interop.Story.equal;
import static interop.Story.refused;
import static interop.Story.step;

import io.confluent.dekregistry.client.CachedDekRegistryClient;
import io.confluent.dekregistry.client.DekRegistryClient;
import io.confluent.kafka.schemaregistry.avro.AvroSchema;
import io.confluent.kafka.schemaregistry.client.rest.entities.RuleSet;
import io.confluent.kafka.schemaregistry.client.rest.exceptions.RestClientException;
import io.confluent.kafka.schemaregistry.encryption.FieldEncryptionExecutor;
import io.confluent.kafka.schemaregistry.encryption.tink.DekFormat;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;

/** Fields that are encrypted with keys the registry keeps: wrapped by the client, or by the server. */
final class Encryption {
  private static final String SECRET = "s3cret";
  private static final String NUMBER = "4111-1111-1111-1111";
  private static final Schema CARD = new Schema.Parser().parse("{\"type\":\"record\",\"name\":\"Card\",\"fields\":["
      + "{\"name\":\"owner\",\"type\":\"string\"},"
      + "{\"name\":\"number\",\"type\":\"string\",\"confluent:tags\":[\"PII\"]}]}");
  private static final Map<String, Object> ENCRYPTING = Map.of(
      "auto.register.schemas", false, "use.latest.version", true, "rule.executors", "encrypt",
      "rule.executors.encrypt.class", FieldEncryptionExecutor.class.getName(),
      "rule.executors.encrypt.param.secret", SECRET);

  private final Serdes serdes;
  private final DekRegistryClient keys;

  Encryption(Serdes serdes) {
    this.serdes = serdes;
    var settings = serdes.settings(Map.of());
    var urls = List.of(settings.get("schema.registry.url").toString());
    this.keys = new CachedDekRegistryClient(urls, 100, -1, settings, Map.of());
  }

  void tell() throws Exception {
    step("keys that the client wraps");
    roundTrip("wallets", "of-the-client");
    equal("key of keys", "local-kms", keys.getKek("of-the-client", false).getKmsType());
    step("keys that the server wraps");
    keys.createKek("shared", "local-kms", "here", Map.of("secret", SECRET), "of the server", true);
    equal("shared", true, keys.getKek("shared", false).isShared());
    roundTrip("purses", "shared");
    equal("all of them", List.of("of-the-client", "shared"), keys.listKeks(false));
    delete("of-the-client", "wallets-value");
    delete("shared", "purses-value");
    equal("left", List.of(), keys.listKeks(true));
  }

  private void roundTrip(String topic, String kek) throws Exception {
    var parameters = new HashMap<>(Map.of("encrypt.kek.name", kek));
    if (!kek.equals("shared")) {
      parameters.putAll(Map.of("encrypt.kms.type", "local-kms", "encrypt.kms.key.id", "mine"));
    }
    var rule = Serdes.rule("secret", "ENCRYPT", "PII", parameters);
    serdes.client().register(topic + "-value", new AvroSchema(CARD).copy(null, new RuleSet(List.of(), List.of(rule))));
    var card = new GenericData.Record(CARD);
    card.put("owner", "Ann");
    card.put("number", NUMBER);
    var event = serdes.write(topic, card, ENCRYPTING);
    var seen = new String(event, StandardCharsets.ISO_8859_1);
    equal("the owner is seen", true, seen.contains("Ann"));
    equal("the number is not", false, seen.contains(NUMBER));
    equal("read", NUMBER, number(serdes.read(topic, event, ENCRYPTING)));
    equal("subjects with a key", List.of(topic + "-value"), keys.listDeks(kek, false));
    equal("its versions", List.of(1), keys.listDekVersions(kek, topic + "-value", DekFormat.AES256_GCM, false));
    equal("read by who cannot decrypt", false, NUMBER.equals(number(serdes.read(topic, event, Map.of()))));
    serdes.delete(topic + "-value");
  }

  private void delete(String kek, String subject) throws Exception {
    step("delete the keys of " + kek);
    refused("a key that others need", RestClientException.class, () -> keys.deleteKek(kek, false));
    for (var forGood : List.of(false, true)) {
      keys.deleteDek(kek, subject, DekFormat.AES256_GCM, forGood);
    }
    for (var forGood : List.of(false, true)) {
      keys.deleteKek(kek, forGood);
    }
  }

  private static String number(Object card) {
    return ((GenericRecord) card).get("number").toString();
  }
}
