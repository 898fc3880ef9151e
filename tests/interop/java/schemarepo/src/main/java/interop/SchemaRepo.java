package interop;

import static interop.Story.equal;
import static interop.Story.refused;
import static interop.Story.step;

import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Set;
import java.util.stream.StreamSupport;
import org.schemarepo.Repository;
import org.schemarepo.SchemaEntry;
import org.schemarepo.SchemaValidationException;
import org.schemarepo.Subject;
import org.schemarepo.SubjectConfig;
import org.schemarepo.client.Avro1124RESTRepositoryClient;
import org.schemarepo.client.RESTRepositoryClient;
import org.schemarepo.json.GsonJsonUtil;

/** Both clients: for schema-repo's own server, and for that of AVRO-1124. Arguments: the client, the URL, the server's. */
public final class SchemaRepo {
  private static final String ONE = record("{\"name\":\"amount\",\"type\":\"int\"}");
  private static final String TWO = record("{\"name\":\"amount\",\"type\":\"int\"},"
      + "{\"name\":\"currency\",\"type\":\"string\",\"default\":\"EUR\"}");
  private static final String THREE = record("{\"name\":\"amount\",\"type\":\"long\",\"doc\":\"ü\"}");
  private static final String BAD = record("{\"name\":\"amount\",\"type\":\"string\"}");
  private static final String NAME = "orders of ü+v & 100%";

  private SchemaRepo() {}

  public static void main(String[] arguments) throws Exception {
    var url = arguments[1];
    switch (arguments[0]) {
      case "rest" -> {
        var client = new RESTRepositoryClient(url, new GsonJsonUtil(), false);
        administration(client, URI.create(url).resolve(".").toString().equals(arguments[2] + "/"));
        manyLines(client);
        stories(client, arguments[2]);
      }
      case "avro1124" -> stories(new Avro1124RESTRepositoryClient(url), arguments[2]);
      default -> throw new IllegalArgumentException(arguments[0]);
    }
  }

  private static void stories(Repository client, String server) throws Exception {
    subjects(client);
    schemas(client.lookup(NAME));
    checked(client);
    Events.tell(client);
    deleted(client, server);
  }

  /** Both are asked for beside the URL; beside that at the root is the config of another dialect. */
  private static void administration(RESTRepositoryClient client, boolean atRoot) {
    step("what the server says of itself");
    equal("status", true, client.getStatus().startsWith("OK : Stele "));
    if (!atRoot) {
      equal("ids", "sequential", client.getConfiguration(true).getProperty("schema-repo.ids"));
      equal("set by the operator", Set.of(), client.getConfiguration(false).keySet());
    }
    equal("no subjects", List.of(), names(client));
  }

  private static void subjects(Repository client) {
    step("subjects and their configs");
    var config = new SubjectConfig.Builder().set("team", "a=b:c #1 ü").addValidator("backward").build();
    equal("there is none", null, client.lookup(NAME));
    equal("registered", NAME, client.register(NAME, config).getName());
    equal("registered again", NAME, client.register(NAME, SubjectConfig.emptyConfig()).getName());
    var subject = client.lookup(NAME);
    equal("config", config, subject.getConfig());
    equal("validators", Set.of("backward"), subject.getConfig().getValidators());
    equal("whether ids are numbers", true, subject.integralKeys());
    client.register("second", null);
    equal("subjects", true, names(client).containsAll(List.of(NAME, "second")));
  }

  private static void schemas(Subject subject) throws SchemaValidationException {
    step("schemas, one after the other");
    equal("the latest of none", null, subject.latest());
    var first = subject.registerIfLatest(ONE, null);
    equal("the first", new SchemaEntry("0", ONE), first);
    var second = subject.register(TWO);
    equal("the second", new SchemaEntry("1", TWO), second);
    equal("the first again", first, subject.register(ONE));
    refused("what cannot read the latest", SchemaValidationException.class, () -> subject.register(BAD));
    equal("the first is not the latest", null, subject.registerIfLatest(THREE, first));
    equal("the second is", new SchemaEntry("2", THREE), subject.registerIfLatest(THREE, second));
    equal("the latest", new SchemaEntry("2", THREE), subject.latest());
    equal("by id", second, subject.lookupById("1"));
    equal("by an id there is not", null, subject.lookupById("77"));
    equal("by its text", second, subject.lookupBySchema(TWO));
    equal("by a text that is not there", null, subject.lookupBySchema(BAD));
    equal("all, the newest first", List.of("2", "1", "0"), ids(subject));
  }

  private static void checked(Repository client) throws SchemaValidationException {
    step("other validators");
    var reject = client.register("closed", new SubjectConfig.Builder().addValidator("repo.reject").build());
    refused("whatever it is", SchemaValidationException.class, () -> reject.register(ONE));
    var open = client.register("open", new SubjectConfig.Builder().setValidators(List.of()).build());
    equal("no validators", Set.of(), open.getConfig().getValidators());
    equal("anything", "0", open.register(ONE).getId());
    equal("anything", "1", open.register(BAD).getId());
    equal("no schema at all", "2", open.register("int or so").getId());
  }

  /** The API has nothing to delete with; what Pravega's deletes is gone here too. */
  private static void deleted(Repository client, String server) throws Exception {
    step("deleted by another dialect");
    for (var name : names(client)) {
      var group = URLEncoder.encode(name, StandardCharsets.UTF_8).replace("+", "%20");
      var request = HttpRequest.newBuilder(URI.create(server + "/v1/groups/" + group)).DELETE().build();
      HttpClient.newHttpClient().send(request, BodyHandlers.discarding());
      equal(name, null, client.lookup(name));
    }
    equal("left", List.of(), names(client));
  }

  private static void manyLines(Repository client) throws SchemaValidationException {
    step("a schema of many lines");
    var lines = client.register("lines", SubjectConfig.emptyConfig());
    var text = ONE.replace(",", ",\n\t");
    equal("its text", text, lines.lookupById(lines.register(text).getId()).getSchema());
    equal("all", List.of("0"), ids(lines));
    equal("the latest", text, lines.latest().getSchema());
  }

  private static List<String> names(Repository client) {
    return StreamSupport.stream(client.subjects().spliterator(), false).map(Subject::getName).toList();
  }

  private static List<String> ids(Subject subject) {
    return StreamSupport.stream(subject.allEntries().spliterator(), false).map(SchemaEntry::getId).toList();
  }

  private static String record(String fields) {
    return "{\"type\":\"record\",\"name\":\"Order\",\"namespace\":\"shop\",\"fields\":[" + fields + "]}";
  }
}
