package interop;

import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.specific.SpecificRecordBase;

/** A record as Avro's compiler makes them, as far as serializers need it; they find it by the name of its schema. */
public final class Payment extends SpecificRecordBase {
  public static final Schema SCHEMA$ = SchemaBuilder.record("Payment").namespace("interop").fields()
      .requiredInt("amount").name("currency").type().stringType().stringDefault("EUR").endRecord();

  private int amount;
  private CharSequence currency;

  public Payment() {}

  Payment(int amount, String currency) {
    this.amount = amount;
    this.currency = currency;
  }

  @Override
  public Schema getSchema() {
    return SCHEMA$;
  }

  @Override
  public Object get(int field) {
    return field == 0 ? (Object) amount : currency;
  }

  @Override
  public void put(int field, Object value) {
    if (field == 0) {
      amount = (Integer) value;
    } else {
      currency = value.toString();
    }
  }
}
