import type Joi from 'joi'
import type { JsonSchema } from '../http/description'
import { isJoiSchema, type SignupSchema, type StandardSchema } from '../http/host-schema'

/** Collects named schemas, so that each is described once and then referenced. */
export class NamedSchemas {
  readonly all = new Map<string, JsonSchema>()

  /** Returns the schema with a reference for every part that has a `title`. */
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
 * @param presence of fields whose schema does not set it, as in `validate`
 */
export function jsonSchemaOf(schema: Joi.ObjectSchema, presence: 'required' | 'optional' = 'required'): JsonSchema {
  const silent = presence === 'required' ? fieldsThatDoNotSay(schema) : []
  const spoken = silent.length === 0 ? schema : schema.fork(silent, (field) => field.required())
  // `unknown()`, because unknown fields are ignored. A host's schema of another major version of Joi has no JSON Schema.
  return spoken.unknown()['~standard'].jsonSchema?.input({ target: 'draft-2020-12' }) ?? { type: 'object' }
}

function fieldsThatDoNotSay(schema: Joi.ObjectSchema): string[] {
  const { keys = {} } = schema.describe() as { keys?: Record<string, { flags?: { presence?: string } }> } // as Joi documents it
  return Object.entries(keys).flatMap(([name, { flags }]) => (flags?.presence === undefined ? [name] : []))
}

/**
 * Returns only the names and types of a host's fields. The document is public, and the rules, defaults or messages of a schema may be
 * private (invitation codes, for example). A schema that cannot be described becomes an object.
 */
export function hostsSchemaOf(schema: SignupSchema): JsonSchema {
  try {
    return told(isJoiSchema(schema) ? jsonSchemaOf(schema, 'optional') : standardJsonSchema(schema))
  } catch {
    return { type: 'object' }
  }
}

/** Returns the JSON Schema of a Standard Schema, which some libraries provide (standardschema.dev/json-schema). */
function standardJsonSchema({ '~standard': standard }: StandardSchema): JsonSchema {
  const { jsonSchema } = standard as { jsonSchema?: { input?: (options: { target: string }) => JsonSchema } } // if it is there
  return jsonSchema?.input?.({ target: 'draft-2020-12' }) ?? { type: 'object' }
}

const toldKeywords = new Set(['type', 'format', 'minLength', 'maxLength', 'minimum', 'maximum', 'minItems', 'maxItems', 'required'])

function told(schema: JsonSchema): JsonSchema {
  const { properties, items } = schema as { properties?: Record<string, JsonSchema>; items?: JsonSchema } // as JSON Schema has them
  return {
    ...Object.fromEntries(Object.entries(schema).filter(([keyword]) => toldKeywords.has(keyword))),
    ...(properties && { properties: Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, told(field)])) }),
    ...(items && { items: told(items) }),
  }
}
