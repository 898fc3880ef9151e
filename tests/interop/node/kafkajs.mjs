// @kafkajs/confluent-schema-registry against a registry: Avro, JSON Schema and Protobuf, references, refusals. Argument: its URL.
import assert from 'node:assert/strict'
import kafkajs from '@kafkajs/confluent-schema-registry'

const { SchemaRegistry, SchemaType, COMPATIBILITY } = kafkajs
const host = process.argv[2]
const registry = new SchemaRegistry({ host })

const record = (...more) =>
  JSON.stringify({ type: 'record', name: 'R', namespace: 'kjs', fields: [{ name: 'a', type: 'int' }, ...more] })
const added = { name: 'b', type: 'string', default: '' }

// Avro: register, evolve, encode, decode with the writer's schema and into a reader's.
const one = await registry.register({ type: SchemaType.AVRO, schema: record() }, { subject: 'kjs-avro' })
const two = await registry.register({ type: SchemaType.AVRO, schema: record(added) }, { subject: 'kjs-avro' })
assert.notEqual(one.id, two.id)
assert.equal((await registry.register({ type: SchemaType.AVRO, schema: record() }, { subject: 'kjs-avro' })).id, one.id)
assert.equal(await registry.getLatestSchemaId('kjs-avro'), two.id)
assert.equal(await registry.getRegistryId('kjs-avro', 1), one.id)
assert.equal(
  await registry.getRegistryIdBySchema('kjs-avro', { type: SchemaType.AVRO, schema: record(added) }),
  two.id,
)
const message = await registry.encode(two.id, { a: 1, b: 'x' })
const fresh = new SchemaRegistry({ host })
assert.deepEqual({ ...(await fresh.decode(message)) }, { a: 1, b: 'x' })
const old = await registry.encode(one.id, { a: 7 })
const resolved = await fresh.decode(old, { [SchemaType.AVRO]: { readerSchema: JSON.parse(record(added)) } })
assert.deepEqual({ ...resolved }, { a: 7, b: '' })

// A refusal is an error with the registry's own sentence.
const bad = record().replace('"int"', '"string"')
await assert.rejects(
  fresh.register({ type: SchemaType.AVRO, schema: bad }, { subject: 'kjs-avro', compatibility: COMPATIBILITY.BACKWARD }),
  /incompatible/i,
)

// JSON Schema and Protobuf.
const object = { type: 'object', properties: { a: { type: 'integer' } }, additionalProperties: false }
const json = await registry.register({ type: SchemaType.JSON, schema: JSON.stringify(object) }, { subject: 'kjs-json' })
assert.deepEqual(await fresh.decode(await registry.encode(json.id, { a: 3 })), { a: 3 })
await assert.rejects(registry.encode(json.id, { a: 'x' }))
const proto = 'syntax = "proto3"; package kjs; message M { int32 a = 1; string b = 2; }'
const message3 = await registry.register({ type: SchemaType.PROTOBUF, schema: proto }, { subject: 'kjs-proto' })
assert.deepEqual({ ...(await fresh.decode(await registry.encode(message3.id, { a: 4, b: 'y' }))) }, { a: 4, b: 'y' })

// A schema that refers to another one.
const inner = JSON.stringify({ type: 'enum', name: 'kjs.E', symbols: ['X', 'Y'] })
await registry.register({ type: SchemaType.AVRO, schema: inner }, { subject: 'kjs-inner' })
const outer = JSON.stringify({ type: 'record', name: 'kjs.O', fields: [{ name: 'e', type: 'kjs.E' }] })
const references = [{ name: 'kjs.E', subject: 'kjs-inner', version: 1 }]
const using = await registry.register({ type: SchemaType.AVRO, schema: outer, references }, { subject: 'kjs-outer' })
assert.deepEqual({ ...(await fresh.decode(await registry.encode(using.id, { e: 'Y' }))) }, { e: 'Y' })
