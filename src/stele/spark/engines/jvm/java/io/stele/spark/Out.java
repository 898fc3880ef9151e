package io.stele.spark;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** The bytes of one record while it is being written. */
final class Out {
  private static final VarHandle LONGS =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle INTS =
      MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

  private byte[] data = new byte[512];
  private int size;

  /** Begin a record with the frame of a schema id. */
  void begin(int id) {
    data[0] = 0;
    data[1] = (byte) (id >>> 24);
    data[2] = (byte) (id >>> 16);
    data[3] = (byte) (id >>> 8);
    data[4] = (byte) id;
    size = 5;
  }

  byte[] bytes() {
    return Arrays.copyOf(data, size);
  }

  private int grown(int more) {
    int at = size;
    int wanted = Math.addExact(at, more);
    if (wanted > data.length) {
      data = Arrays.copyOf(data, Math.max(wanted, (int) Math.min(2L * data.length, Integer.MAX_VALUE - 16)));
    }
    size = wanted;
    return at;
  }

  void varint(long value) {
    long bits = value << 1 ^ value >> 63;
    int at = grown(10);
    while ((bits & ~0x7fL) != 0) {
      data[at++] = (byte) (bits | 0x80);
      bits >>>= 7;
    }
    data[at++] = (byte) bits;
    size = at;
  }

  void one(int value) {
    data[grown(1)] = (byte) value;
  }

  void four(int value) {
    INTS.set(data, grown(4), value);
  }

  void eight(long value) {
    LONGS.set(data, grown(8), value);
  }

  void bytes(byte[] value) {
    System.arraycopy(value, 0, data, grown(value.length), value.length);
  }

  void text(UTF8String value, int length) {
    int at = grown(length);
    value.writeToMemory(data, Platform.BYTE_ARRAY_OFFSET + (long) at);
  }
}
