import type Joi from 'joi'
import type { JsonSchema } from '../../http/description'
import { isJoiSchema, type SignupSchema, type StandardSchema } from '../../http/host-schema'

/** Collects named schemas. Each schema is described once, and other places refer to that description. */
export class NamedSchemas {
  readonly all = new Map<string, JsonSchema>()

  /** Returns the schema with a reference in place of every part that has a `title`. */
  refer(schema: JsonSchema): JsonSchema {
    const referring = Object.fromEntries(Object.entries(schema).map(([keyword, value]) => [keyword, this.referWithin(value)]))
    const { title, ...rest } = referring
    if (typeof title !== 'string') return referring
    this.all.set(title, rest)
    return { $ref: `#/components/schemas/${title}` }
  }

  private referWithin(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((item) => this.referWithin(item))
    return typeof value === 'object' && value !== null ? this.refer(value as JsonSchema) : value
  }
}

/**
 * Returns the Joi schema of a body as JSON Schema.
 * @param presence whether a field is required if its schema does not say so; as in `validate`
 */
export function jsonSchemaOf(schema: Joi.ObjectSchema, presence: 'required' | 'optional' = 'required'): JsonSchema {
  const silent = presence === 'required' ? fieldsThatDoNotSay(schema) : []
  const spoken = silent.length === 0 ? schema : schema.fork(silent, (field) => field.required())
  // `unknown()`, because unknown fields are ignored. If a host uses another major version of Joi, its schema has no JSON Schema.
  const described = spoken.unknown()['~standard'].jsonSchema?.input({ target: 'draft-2020-12' }) ?? { type: 'object' }
  return { ...described, ...alternativesOf(schema) }
}

/** Returns true if a body without any field is refused. */
export function needsAField({ required = [], oneOf, anyOf }: JsonSchema): boolean {
  return (required as unknown[]).length > 0 || oneOf !== undefined || anyOf !== undefined
}

/** Returns the schema of a body that has at least one of the fields. Settings decide which of these fields the schema has. */
export function withOneOf(schema: JsonSchema, names: readonly string[]): JsonSchema {
  const known = names.filter((name) => Object.hasOwn(Object(schema['properties']), name))
  return known.length > 0 ? { ...schema, anyOf: known.map((name) => ({ required: [name] })) } : schema
}

/** Returns what Joi leaves out of the JSON Schema: the rule that a body has exactly one of several fields. */
function alternativesOf(schema: Joi.ObjectSchema): JsonSchema {
  const { dependencies = [] } = schema.describe() as { dependencies?: { rel: string; peers: readonly string[] }[] } // as Joi documents
  const one = dependencies.find(({ rel }) => rel === 'xor')
  return one ? { oneOf: one.peers.map((name) => ({ required: [name] })) } : {}
}

function fieldsThatDoNotSay(schema: Joi.ObjectSchema): string[] {
  const { keys = {} } = schema.describe() as { keys?: Record<string, { flags?: { presence?: string } }> } // as Joi documents
  return Object.entries(keys).flatMap(([name, { flags }]) => (flags?.presence === undefined ? [name] : []))
}

/**
 * Returns the names, types, formats and lengths of a host's fields, and which fields are required. Leaves out everything else, because the
 * document is public. The patterns, allowed values, defaults and messages of a schema can be private (invitation codes). If a schema cannot
 * be described, the result is `{ type: 'object' }`.
 */
export function hostsSchemaOf(schema: SignupSchema): JsonSchema {
  try {
    return told(isJoiSchema(schema) ? jsonSchemaOf(schema, 'optional') : standardJsonSchema(schema))
  } catch {
    return { type: 'object' }
  }
}

/**
 * Returns the JSON Schema of a Standard Schema. Some libraries provide it (standardschema.dev/json-schema). For other libraries, returns `{
 * type: 'object' }`.
 */
function standardJsonSchema({ '~standard': standard }: StandardSchema): JsonSchema {
  const { jsonSchema } = standard as { jsonSchema?: { input?: (options: { target: string }) => JsonSchema } } // some libraries lack it
  return jsonSchema?.input?.({ target: 'draft-2020-12' }) ?? { type: 'object' }
}

const toldKeywords = new Set(['type', 'format', 'minLength', 'maxLength', 'minimum', 'maximum', 'minItems', 'maxItems', 'required'])

function told(schema: JsonSchema): JsonSchema {
  const { properties, items } = schema as { properties?: Record<string, JsonSchema>; items?: JsonSchema } // according to JSON Schema
  return {
    ...Object.fromEntries(Object.entries(schema).filter(([keyword]) => toldKeywords.has(keyword))),
    ...(properties && { properties: Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, told(field)])) }),
    ...(items && { items: told(items) }),
  }
}
