package io.stele.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.zip.InflaterInputStream;

/**
 * What Python asks of a function, carried in the function's own name: JSON, deflated, in the URL-safe alphabet. So a
 * plan is complete in itself, in this process or behind Spark Connect, and no session has to remember anything.
 */
final class Spec {
  private static final int MOST_BYTES = 256 << 20;
  private static final ObjectMapper JSON = new ObjectMapper();

  private Spec() {}

  /** The JSON in a name. */
  static JsonNode read(String name) {
    byte[] data = Base64.getUrlDecoder().decode(name.getBytes(StandardCharsets.US_ASCII));
    try (InputStream in = new InflaterInputStream(new ByteArrayInputStream(data))) {
      byte[] json = in.readNBytes(MOST_BYTES);
      if (json.length == MOST_BYTES) {
        throw new IllegalArgumentException("the schemas of one function take more than " + MOST_BYTES + " bytes");
      }
      return JSON.readTree(json);
    } catch (IOException e) {
      throw new UncheckedIOException("the name of the function carries no schemas", e);
    }
  }

  /** A line of JSON. */
  static JsonNode line(String text) throws IOException {
    return JSON.readTree(text);
  }
}
