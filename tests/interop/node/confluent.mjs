// @confluentinc/schemaregistry against a registry: client, serializers, GUID headers, references, deletion. Argument: its URL.
import assert from 'node:assert/strict'
import confluent from '@confluentinc/schemaregistry'

const {
  AvroDeserializer,
  AvroSerializer,
  Compatibility,
  HeaderSchemaIdSerializer,
  JsonDeserializer,
  JsonSerializer,
  SchemaRegistryClient,
  SerdeType,
} = confluent
const connect = () => new SchemaRegistryClient({ baseURLs: [process.argv[2]] })
const client = connect()

const record = (...more) =>
  JSON.stringify({ type: 'record', name: 'R', namespace: 'cjs', fields: [{ name: 'a', type: 'int' }, ...more] })
const info = schema => ({ schema, schemaType: 'AVRO' })
const one = info(record())
const two = info(record({ name: 'b', type: 'string', default: '' }))
const bad = info(record().replace('"int"', '"string"'))

// Register, evolve, find in every way.
const first = await client.register('cjs-value', one)
const full = await client.registerFullResponse('cjs-value', two)
assert.equal(full.version ?? (await client.getLatestSchemaMetadata('cjs-value')).version, 2)
assert.equal(await client.register('cjs-value', one), first)
assert.equal((await connect().getBySubjectAndId('cjs-value', first)).schema, one.schema)
const latest = await connect().getLatestSchemaMetadata('cjs-value')
assert.deepEqual([latest.id, latest.version], [full.id, 2])
assert.equal((await connect().getByGuid(latest.guid)).schema, two.schema)
assert.equal(await connect().getId('cjs-value', one), first)
assert.equal(await connect().getVersion('cjs-value', two), 2)
assert.deepEqual(await client.getAllVersions('cjs-value'), [1, 2])
assert.ok((await client.getAllSubjects()).includes('cjs-value'))
assert.equal((await client.getSchemaMetadata('cjs-value', 1)).id, first)

// Verdicts, levels, refusals.
assert.equal(await client.testSubjectCompatibility('cjs-value', two), true)
assert.equal(await client.testCompatibility('cjs-value', 1, bad), false)
await assert.rejects(connect().register('cjs-value', bad), error => error.status === 409 || /409/.test(String(error)))
assert.equal(await client.updateCompatibility('cjs-value', Compatibility.FULL), 'FULL')
assert.equal(await connect().getCompatibility('cjs-value'), 'FULL')
await client.updateConfig('cjs-value', { normalize: true })
assert.equal((await connect().getConfig('cjs-value')).normalize, true)

// Metadata.
await client.register('cjs-meta', { ...one, metadata: { properties: { owner: 'me' } } })
assert.equal((await client.getLatestWithMetadata('cjs-meta', { owner: 'me' }, false)).version, 1)

// Serializers: identity in front of the record, and in its headers.
const avro = new AvroSerializer(client, SerdeType.VALUE, { useLatestVersion: true })
const reader = new AvroDeserializer(connect(), SerdeType.VALUE, {})
assert.deepEqual({ ...(await reader.deserialize('cjs', await avro.serialize('cjs', { a: 1, b: 'x' }))) }, { a: 1, b: 'x' })
const header = new AvroSerializer(client, SerdeType.VALUE, {
  useLatestVersion: true,
  schemaIdSerializer: HeaderSchemaIdSerializer,
})
const headers = {}
const bare = await header.serialize('cjs', { a: 2, b: 'long enough' }, headers)
assert.equal(Object.keys(headers).length, 1)
assert.deepEqual({ ...(await reader.deserialize('cjs', bare, headers)) }, { a: 2, b: 'long enough' })
const object = { type: 'object', properties: { a: { type: 'integer' } }, additionalProperties: false }
await client.register('cjsj-value', { schema: JSON.stringify(object), schemaType: 'JSON' })
const json = new JsonSerializer(client, SerdeType.VALUE, { useLatestVersion: true, validate: true })
const jsonReader = new JsonDeserializer(connect(), SerdeType.VALUE, { validate: true })
assert.deepEqual(await jsonReader.deserialize('cjsj', await json.serialize('cjsj', { a: 3 })), { a: 3 })
await assert.rejects(json.serialize('cjsj', { a: 'x' }))

// Deletion in two steps.
assert.equal(await client.deleteSubjectVersion('cjs-value', 1), 1)
assert.deepEqual(await client.deleteSubject('cjs-value'), [2])
assert.deepEqual(await client.deleteSubject('cjs-value', true), [1, 2])
await assert.rejects(connect().getLatestSchemaMetadata('cjs-value'), /404/)
await client.close()
