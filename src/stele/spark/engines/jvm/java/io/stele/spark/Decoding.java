package io.stele.spark;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Decodes framed records, one after the other, into rows (value, schema_id, error), written byte by byte in Spark's own
 * format. For one thread at a time.
 */
final class Decoding {
  private static final int HEADER = 5;
  private static final int VALUE = 0;
  private static final int ID = 1;
  private static final int ERROR = 2;

  private final Writers writers;
  private final boolean failFast;
  private final Width width;
  private final UnsafeRowWriter row = new UnsafeRowWriter(3, 512);
  private final UnsafeRowWriter error = new UnsafeRowWriter(row, 4);
  private final Cursor cursor = new Cursor();
  private final Map<Integer, Step> steps = new HashMap<>();
  private int lastId = -1;
  private Step last;

  Decoding(Writers writers, Width width, boolean failFast) {
    this.writers = writers;
    this.width = width;
    this.failFast = failFast;
  }

  /** A row of its own; a null record is null in all columns. */
  UnsafeRow decode(byte[] frame) {
    begin();
    if (frame == null) {
      width.setNull(row, VALUE);
      row.setNullAt(ID);
      row.setNullAt(ERROR);
    } else if (frame.length < HEADER || frame[0] != 0) {
      fail(null, ErrorCode.NOT_FRAMED, null, 0);
    } else {
      framed(frame);
    }
    return row.getRow().copy();
  }

  private void framed(byte[] frame) {
    int id = (frame[1] & 0xff) << 24 | (frame[2] & 0xff) << 16 | (frame[3] & 0xff) << 8 | frame[4] & 0xff;
    Step step = id == lastId && last != null ? last : find(id);
    if (step == null) {
      return;
    }
    cursor.reset(frame, HEADER);
    try {
      step.run(cursor, row, VALUE);
      if (cursor.at != cursor.end) {
        throw new RecordException(ErrorCode.TRAILING, cursor.at);
      }
      row.write(ID, id);
      row.setNullAt(ERROR);
    } catch (RecordException e) {
      begin();
      fail(id, e.code, null, e.at - HEADER);
    } catch (StackOverflowError e) {
      // only a schema with very many types between two levels of a record gets here
      begin();
      fail(id, ErrorCode.ENDLESS, null, cursor.at - HEADER);
    }
  }

  /** The step of a writer; null when there is none, and the row says why. */
  private Step find(int id) {
    Step step = steps.get(id);
    if (step == null) {
      Writers.Known known = writers.find(id);
      if (known == null) {
        fail(id, ErrorCode.UNKNOWN_SCHEMA_ID, null, 0);
        return null;
      }
      if (known.refusal() != null) {
        fail(id, ErrorCode.UNUSABLE_SCHEMA, known.refusal(), 0);
        return null;
      }
      step = new Steps(known.program()).root(row);
      steps.put(id, step);
    }
    lastId = id;
    last = step;
    return step;
  }

  private void begin() {
    row.reset();
    row.zeroOutNullBytes();
  }

  private void fail(Integer id, ErrorCode code, String detail, int offset) {
    String reason = code.describe(id, detail);
    if (failFast) {
      String more = id == null || code.namesSchemaId() ? "" : " (schema id " + id + ") at byte " + offset;
      throw TaskErrors.raised(reason + more, null);
    }
    width.setNull(row, VALUE);
    int begin = row.cursor();
    error.resetRowWriter();
    if (id == null) {
      row.setNullAt(ID);
      error.setNullAt(0);
    } else {
      row.write(ID, id.intValue());
      error.write(0, id.intValue());
    }
    error.write(1, offset);
    error.write(2, UTF8String.fromString(code.name()));
    error.write(3, UTF8String.fromString(reason));
    row.setOffsetAndSizeFromPreviousCursor(ERROR, begin);
  }
}
