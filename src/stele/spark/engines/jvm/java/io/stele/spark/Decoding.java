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
  private final UnsafeRowWriter error = new UnsafeRowWriter(row, 3);
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
      bad(null, Reason.NOT_FRAMED.text(), 0);
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
        throw new Bad(Reason.TRAILING, cursor.at);
      }
      row.write(ID, id);
      row.setNullAt(ERROR);
    } catch (Bad bad) {
      begin();
      bad(id, bad.reason.text(), bad.at - HEADER);
    } catch (StackOverflowError e) {
      // only a schema with very many types between two levels of a record gets here
      begin();
      bad(id, Reason.ENDLESS.text(), cursor.at - HEADER);
    }
  }

  /** The step of a writer; null when there is none, and the row says why. */
  private Step find(int id) {
    Step step = steps.get(id);
    if (step == null) {
      Writers.Known known = writers.find(id);
      if (known == null || known.refusal() != null) {
        bad(id, known == null ? "unknown schema id " + id : known.refusal(), 0);
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

  private void bad(Integer id, String reason, int place) {
    if (failFast) {
      String more = id == null || reason.contains("schema id " + id) ? "" : " (schema id " + id + ") at byte " + place;
      throw Faults.raised(reason + more, null);
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
    error.write(1, place);
    error.write(2, UTF8String.fromString(reason));
    row.setOffsetAndSizeFromPreviousCursor(ERROR, begin);
  }
}
