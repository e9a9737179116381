import Joi from 'joi'

/** An object schema of any library that implements Standard Schema v1 (standardschema.dev), such as zod, valibot or arktype. */
export interface StandardSchema {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => StandardResult | Promise<StandardResult>
  }
}

export type StandardResult =
  | { readonly value: unknown; readonly issues?: undefined }
  | {
      readonly issues: readonly {
        readonly message: string
        readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
      }[]
    }

/** The type of `signup.schema`. */
export type SignupSchema = Joi.ObjectSchema | StandardSchema

/** Contains only the path and the name of the rule, because messages contain the submitted values. */
export interface SchemaIssue {
  readonly path: readonly string[]
  readonly rule: string
}

export interface SchemaAnswer {
  readonly issues: readonly SchemaIssue[]
  /** Null: the schema returned errors and no value. */
  readonly value: Readonly<Record<string, unknown>> | null
}

/** @throws the error that the schema throws; Error if the result is not an object */
export async function askSchema(schema: SignupSchema, body: object): Promise<SchemaAnswer> {
  if (isJoiSchema(schema)) return askJoi(schema, body)
  const result = await schema['~standard'].validate(body)
  if (result.issues) return { issues: result.issues.map((issue) => ({ path: pathOf(issue.path), rule: 'invalid' })), value: null }
  const { value } = result
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { issues: [], value: { ...value } }
  throw new Error('signup.schema returned a value that is not an object.')
}

/** Of our own copy of Joi, or of another copy with the same version. */
export function isJoiSchema(schema: SignupSchema): schema is Joi.ObjectSchema {
  return joiVersionOf(schema) === Joi.version
}

export function joiVersionOf(schema: unknown): string | null {
  const { [Symbol.for('@hapi/joi/schema')]: mark } = Object(schema) as { [mark: symbol]: { version?: unknown } | undefined } // any value
  return mark ? String(mark.version) : null
}

export function isStandardSchema(schema: unknown): schema is StandardSchema {
  const { '~standard': standard } = Object(schema) as { '~standard'?: unknown } // `Object` accepts any value
  const { version, validate } = Object(standard) as { version?: unknown; validate?: unknown } // `Object` accepts any value
  return version === 1 && typeof validate === 'function'
}

export function keysOf(schema: Joi.ObjectSchema): ReadonlySet<string> {
  const { keys = {} } = schema.describe() as { keys?: object } // Joi documents this shape
  return new Set(Object.keys(keys))
}

/** Besides address and password. Empty if the schema returns a promise, which cannot be checked. */
export function requiredFieldsOf(schema: SignupSchema): string[] {
  const issues = issuesOf(schema, { email: 'somebody@example.com', password: 'a quiet harbour in winter', name: null })
  const fields = issues.map(({ path }) => path[0] ?? '').filter((field) => !['email', 'password', 'name', ''].includes(field))
  return [...new Set(fields)]
}

function issuesOf(schema: SignupSchema, body: object): readonly SchemaIssue[] {
  if (isJoiSchema(schema)) return askJoi(schema, body).issues
  const result = schema['~standard'].validate(body)
  if (result instanceof Promise) return []
  return result.issues?.map((issue) => ({ path: pathOf(issue.path), rule: 'invalid' })) ?? []
}

function askJoi(schema: Joi.ObjectSchema, body: object): SchemaAnswer {
  const options = { convert: false, abortEarly: false, stripUnknown: true, presence: 'optional', errors: { render: false } } as const
  const { error, value } = schema.validate(body, options)
  return { issues: error?.details.map(({ path, type }) => ({ path: path.map(String), rule: type })) ?? [], value: { ...value } }
}

function pathOf(path: readonly (PropertyKey | { readonly key: PropertyKey })[] = []): string[] {
  return path.map((part) => String(typeof part === 'object' ? part.key : part))
}
