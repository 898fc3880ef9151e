package io.stele.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;

/**
 * Why a record could not be decoded. Names are those of the Python engines; their sentences come from there too, put
 * into the jar when it is built.
 */
enum Reason {
  NOT_FRAMED,
  TRUNCATED,
  BAD_VARINT,
  INT_RANGE,
  BAD_LENGTH,
  BAD_BOOLEAN,
  BAD_UTF8,
  BAD_SYMBOL,
  UNREADABLE_SYMBOL,
  BAD_BRANCH,
  UNREADABLE_BRANCH,
  BAD_BLOCK,
  TOO_MANY_ITEMS,
  EMPTY_DECIMAL,
  DECIMAL_RANGE,
  OUT_OF_RANGE,
  TRAILING,
  TOO_DEEP,
  ENDLESS;

  /** The sentence for people. */
  String text() {
    return Texts.ALL.required(name()).textValue();
  }

  private static final class Texts {
    static final JsonNode ALL = read();

    private static JsonNode read() {
      try (InputStream in = Reason.class.getResourceAsStream("reasons.json")) {
        return new ObjectMapper().readTree(in);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }
}
