import type Joi from 'joi'
import type { JsonSchema } from '../http/description'
import { isJoiSchema, type SignupSchema, type StandardSchema } from '../http/host-schema'

/** Collects what has a name, which is told once and pointed at from then on. */
export class NamedSchemas {
  readonly all = new Map<string, JsonSchema>()

  /** The schema with a reference in the place of everything that has a `title`. */
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

/** The Joi schema that a body has to satisfy, as JSON Schema. `presence`: of fields whose schema does not say, as `validate` reads it. */
export function jsonSchemaOf(schema: Joi.ObjectSchema, presence: 'required' | 'optional' = 'required'): JsonSchema {
  const silent = presence === 'required' ? fieldsThatDoNotSay(schema) : []
  const spoken = silent.length === 0 ? schema : schema.fork(silent, (field) => field.required())
  // What we do not know we ignore.
  // Another major of Joi, in a host's schema, cannot tell.
  return spoken.unknown()['~standard'].jsonSchema?.input({ target: 'draft-2020-12' }) ?? { type: 'object' }
}

function fieldsThatDoNotSay(schema: Joi.ObjectSchema): string[] {
  const { keys = {} } = schema.describe() as { keys?: Record<string, { flags?: { presence?: string } }> } // as Joi documents it
  return Object.entries(keys).flatMap(([name, { flags }]) => (flags?.presence === undefined ? [name] : []))
}

/**
 * Of a host's fields their names and kinds: the document is public, and what a schema admits, assumes or says may not be meant
 * for it (invitation codes, say). What cannot be told at all is an object.
 */
export function hostsSchemaOf(schema: SignupSchema): JsonSchema {
  try {
    return told(isJoiSchema(schema) ? jsonSchemaOf(schema, 'optional') : standardJsonSchema(schema))
  } catch {
    return { type: 'object' }
  }
}

/** Some libraries tell the JSON Schema of a Standard Schema (standardschema.dev/json-schema). */
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
