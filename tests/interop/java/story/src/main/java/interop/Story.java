package interop;

import java.util.Objects;

/** Tells what a client does and holds it to what is expected: the first surprise ends the program. */
public final class Story {
  private Story() {}

  /** What may throw anything. */
  @FunctionalInterface
  public interface Step {
    void run() throws Exception;
  }

  /** What may throw anything, with a result. */
  /** Says what the next expectations are about. */
  public static void step(String what) {
    System.out.println("-- " + what);
  }

  /** Holds what was found to what is expected. */
  public static void equal(String what, Object expected, Object found) {
    if (!Objects.equals(expected, found)) {
      throw new AssertionError(what + ": expected " + expected + ", found " + found);
    }
    System.out.println("   " + what + ": " + shortened(String.valueOf(found)));
  }

  /** The step must fail with such an error, or one that has such a cause; that error is returned. */
  public static <E extends Throwable> E refused(String what, Class<E> with, Step step) {
    Throwable error = null;
    try {
      step.run();
    } catch (Throwable thrown) {
      error = thrown;
    }
    for (Throwable cause = error; cause != null; cause = cause.getCause()) {
      if (with.isInstance(cause)) {
        System.out.println("   refused: " + what + ": " + shortened(String.valueOf(cause.getMessage())));
        return with.cast(cause);
      }
    }
    throw new AssertionError(what + ": expected a " + with.getSimpleName() + ", found " + error, error);
  }

  private static String shortened(String text) {
    var line = text.replaceAll("\\s+", " ");
    return line.length() <= 100 ? line : line.substring(0, 97) + "...";
  }
}
