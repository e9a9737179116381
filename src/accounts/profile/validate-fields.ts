import type { AuthContext } from '../../context'
import { ValidationError } from '../../core/errors'
import { askSchema, isJoiSchema, type SchemaIssue, type SignupSchema } from '../../http/host-schema'
import type { HostFields, UserRecord } from '../../store/auth-store'
import { announceDroppedFields } from './announce-dropped-fields'
import { refuseOthers } from './writable-fields'

/**
 * Returns the new values of a person's fields, as `signup.schema` accepts them. The schema validates the whole person: the new values, and
 * the stored values of all other fields. Only errors about the sent fields count, because a sign-up can require more fields (terms, a
 * captcha).
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
  // A Standard Schema with issues returns no values. None of these issues counts here, so the sent values are used as they are.
  if (!value) return sent
  if (!isJoiSchema(schema)) announceDroppedFields(ctx, schema, sent, value)
  return Object.fromEntries(Object.keys(sent).flatMap((name) => (value[name] === undefined ? [] : [[name, value[name]]])))
}

/** Returns true for a rule about several fields together. Such a rule has no path. */
function isOfWhole({ path }: SchemaIssue): boolean {
  return path.length === 0
}

/** Returns the new issues: issues that the stored values alone do not have. */
async function newOnes(schema: SignupSchema, stored: object, issues: readonly SchemaIssue[]): Promise<readonly SchemaIssue[]> {
  const before = (await askSchema(schema, stored)).issues.filter(isOfWhole)
  if (issues.length > before.length) return issues
  return issues.filter(({ rule }) => !before.some((known) => known.rule === rule))
}

/** Returns the stored values for the schema. Leaves out null values, because schemas expect an absent value instead of null. */
function storedValues({ email, name, fields = {} }: UserRecord): object {
  return Object.fromEntries(Object.entries({ email, name, ...fields }).filter(([, value]) => value !== null))
}
