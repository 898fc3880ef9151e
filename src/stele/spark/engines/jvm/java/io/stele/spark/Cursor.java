package io.stele.spark;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** A place in a record's bytes, and how many items without bytes it may still hold. Every read is within bounds. */
final class Cursor {
  /** Items without bytes that one record may hold beyond its own length: bounds memory and time. */
  private static final int FREE_ITEMS = 1024;

  private static final long HIGH_BITS = 0x8080808080808080L;
  private static final VarHandle LONGS =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle INTS =
      MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

  byte[] data;
  int at;
  int end;

  /** In how many records, each inside the one before, we are while reading past them. */
  int levels;

  private long free;

  /** Begin at a place of other bytes. */
  void reset(byte[] data, int at) {
    this.data = data;
    this.at = at;
    this.end = data.length;
    this.free = (long) FREE_ITEMS + end - at;
    this.levels = 0;
  }

  int left() {
    return end - at;
  }

  /** A zig-zag integer of at most 64 bits; {@code begin} is the place an error names. */
  long varint(int begin) {
    if (at < end) {
      int first = data[at];
      if (first >= 0) {
        at++;
        return (first >>> 1) ^ -(first & 1);
      }
    }
    return longer(begin);
  }

  private long longer(int begin) {
    long bits = 0;
    int shift = 0;
    int place = at;
    while (place < end) {
      int part = data[place++];
      if (shift == 63 && (part & 0xff) > 1) {
        throw new RecordException(ErrorCode.BAD_VARINT, begin);
      }
      bits |= (long) (part & 0x7f) << shift;
      if (part >= 0) {
        at = place;
        return (bits >>> 1) ^ -(bits & 1);
      }
      shift += 7;
    }
    throw new RecordException(ErrorCode.TRUNCATED, begin);
  }

  /** A zig-zag integer that must fit 32 bits. */
  int int32() {
    int begin = at;
    long value = varint(begin);
    if (value != (int) value) {
      throw new RecordException(ErrorCode.INT_RANGE, begin);
    }
    return (int) value;
  }

  /** An index below {@code limit}. */
  int index(int limit, ErrorCode beyond) {
    int begin = at;
    long value = varint(begin);
    if (value < 0 || value >= limit) {
      throw new RecordException(beyond, begin);
    }
    return (int) value;
  }

  /** Demand {@code size} bytes; the place of the first, behind which the cursor moves. */
  int take(int size) {
    if (size > end - at) {
      throw new RecordException(ErrorCode.TRUNCATED, at);
    }
    int begin = at;
    at += size;
    return begin;
  }

  /** The length in front of bytes: {@code size} itself, what is left for {@link Steps#REST}, or what the record says. */
  int length(int size) {
    if (size >= 0) {
      if (size > end - at) {
        throw new RecordException(ErrorCode.TRUNCATED, at);
      }
      return size;
    }
    if (size == Steps.REST) {
      return end - at;
    }
    int begin = at;
    long length = varint(begin);
    if (length < 0 || length > end - at) {
      throw new RecordException(ErrorCode.BAD_LENGTH, begin);
    }
    return (int) length;
  }

  float float32() {
    return Float.intBitsToFloat((int) INTS.get(data, take(4)));
  }

  double float64() {
    return Double.longBitsToDouble((long) LONGS.get(data, take(8)));
  }

  boolean bool() {
    int begin = take(1);
    if ((data[begin] & 0xfe) != 0) {
      throw new RecordException(ErrorCode.BAD_BOOLEAN, begin);
    }
    return data[begin] == 1;
  }

  /** The items of the next block, each of at least {@code floor} bytes; 0 ends the array or map. */
  int block(int floor) {
    int begin = at;
    long count = varint(begin);
    if (count < 0) {
      long size = varint(begin);
      if (size < 0 || size > left() || count == Long.MIN_VALUE) {
        throw new RecordException(ErrorCode.BAD_BLOCK, begin);
      }
      count = -count;
    }
    if (floor > 0) {
      if (count > left() / floor) {
        throw new RecordException(ErrorCode.BAD_BLOCK, begin);
      }
    } else if (count > free) {
      throw new RecordException(ErrorCode.TOO_MANY_ITEMS, begin);
    } else {
      free -= count;
    }
    return (int) count;
  }

  /** Whether the next {@code length} bytes are UTF-8: no over-long forms, no surrogates, nothing above U+10FFFF. */
  boolean isUtf8(int length) {
    int place = at;
    int stop = at + length;
    while (stop - place >= 8) {
      if (((long) LONGS.get(data, place) & HIGH_BITS) != 0) {
        return isUtf8(place, stop);
      }
      place += 8;
    }
    return isUtf8(place, stop);
  }

  private boolean isUtf8(int from, int stop) {
    int place = from;
    while (place < stop) {
      int first = data[place++];
      if (first >= 0) {
        continue;
      }
      first &= 0xff;
      if (first < 0xc2 || first > 0xf4) {
        return false;
      }
      int more = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
      if (stop - place < more) {
        return false;
      }
      int second = data[place] & 0xff;
      int low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
      int high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
      if (second < low || second > high) {
        return false;
      }
      for (int k = 1; k < more; k++) {
        if ((data[place + k] & 0xc0) != 0x80) {
          return false;
        }
      }
      place += more;
    }
    return true;
  }
}
