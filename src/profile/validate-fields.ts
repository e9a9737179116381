import type { AuthContext } from '../context'
import { ValidationError } from '../errors'
import { askSchema, isJoiSchema, type SchemaIssue, type SignupSchema } from '../http/host-schema'
import type { HostFields, UserRecord } from '../store/auth-store'
import { announceDroppedFields } from './announce-dropped-fields'
import { refuseOthers } from './writable-fields'

/**
 * The new values of a person's fields, as `signup.schema` lets them through. The schema is asked about the whole person, the new values
 * over the stored ones. Only its issues about what was sent count: a signup may ask for more (terms, a captcha) than fields.
 * @throws ValidationError
 */
export async function validateFields(ctx: AuthContext, user: UserRecord, sent: HostFields): Promise<HostFields> {
  refuseOthers(ctx, sent)
  const { schema } = ctx.signup
  if (!schema || Object.keys(sent).length === 0) return sent
  const stored = storedValues(user)
  const { issues, value } = await askSchema(schema, { ...stored, ...sent })
  const ofWhole = issues.some(isOfWhole) ? await newOnes(schema, stored, issues.filter(isOfWhole)) : []
  const errors = [...issues.filter(({ path: [first] }) => first !== undefined && Object.hasOwn(sent, first)), ...ofWhole]
  if (errors.length > 0)
    throw new ValidationError({ details: { errors: errors.map(({ path, rule }) => ({ path: ['fields', ...path].join('.'), rule })) } })
  // A Standard Schema with issues says nothing about the rest: then the values stay as they were sent.
  if (!value) return sent
  if (!isJoiSchema(schema)) announceDroppedFields(ctx, schema, sent, value)
  return Object.fromEntries(Object.keys(sent).flatMap((name) => (value[name] === undefined ? [] : [[name, value[name]]])))
}

/** A rule about several fields together: it has no path. */
function isOfWhole({ path }: SchemaIssue): boolean {
  return path.length === 0
}

/** What the stored values alone do not break already. */
async function newOnes(schema: SignupSchema, stored: object, issues: readonly SchemaIssue[]): Promise<readonly SchemaIssue[]> {
  const before = (await askSchema(schema, stored)).issues.filter(isOfWhole)
  if (issues.length > before.length) return issues
  return issues.filter(({ rule }) => !before.some((known) => known.rule === rule))
}

/** Null is how a column says that there is nothing, which schemas call absent. */
function storedValues({ email, name, fields = {} }: UserRecord): object {
  return Object.fromEntries(Object.entries({ email, name, ...fields }).filter(([, value]) => value !== null))
}
