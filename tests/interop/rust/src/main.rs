//! Registers a schema and reads it back with schema_registry_converter's client.
//!
//! Arguments: the registry's URL and credentials, `user:password` or a token.
//! Exit code 0: both were taken, and wrong credentials were refused.

use schema_registry_converter::blocking::schema_registry::{
    get_all_subjects, get_schema_by_id, post_schema, SrSettings,
};
use schema_registry_converter::schema_registry_common::{SchemaType, SuppliedSchema};

const SUBJECT: &str = "rust-value";
const SCHEMA: &str = r#""string""#;

fn settings(url: &str, credentials: &str) -> SrSettings {
    let mut builder = SrSettings::new_builder(url.to_string());
    match credentials.split_once(':') {
        Some((user, password)) => builder.set_basic_authorization(user, Some(password)),
        None => builder.set_token_authorization(credentials),
    };
    builder.build().expect("settings")
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let (url, credentials) = (&arguments[1], &arguments[2]);
    let good = settings(url, credentials);
    let schema = SuppliedSchema {
        name: None,
        schema_type: SchemaType::Avro,
        schema: SCHEMA.to_string(),
        references: vec![],
        properties: None,
        tags: None,
    };
    let registered = post_schema(&good, SUBJECT.to_string(), schema).expect("registered");
    let read = get_schema_by_id(registered.id, &good).expect("read by id");
    assert_eq!(read.schema, SCHEMA);
    assert!(get_all_subjects(&good).expect("subjects").contains(&SUBJECT.to_string()));
    let wrong = settings(url, &format!("{credentials}x"));
    assert!(get_all_subjects(&wrong).is_err(), "wrong credentials were taken");
}
