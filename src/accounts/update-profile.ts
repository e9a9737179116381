import { type AuthContext, transaction } from '../context'
import { AccountInactiveError, UnauthorizedError, ValidationError } from '../core/errors'
import { seeTroubleshooting } from '../core/troubleshooting'
import { askSchema, isJoiSchema, type SchemaIssue, type SignupSchema, type StandardSchema } from '../http/host-schema'
import { holdSession } from '../sessions/reauthentication/fresh-session'
import { findActiveUser } from '../sessions/reauthentication/request-session'
import type { HostFields, SessionRecord, UserRecord } from '../store/auth-store'
import { type PublicUser, toPublicUser } from '../store/user-records'

export interface ProfileUpdate {
  userId: string
  /** At most 120 characters. An empty name is stored as null. Left out: unchanged. */
  name?: string | null | undefined
  /** The fields to change. A `readOnly` field cannot be changed. */
  fields?: HostFields | undefined
  /** The session of the request. If the session ends meanwhile, the call fails. */
  session?: Pick<SessionRecord, 'id' | 'userId'> | null | undefined
}

/**
 * @throws UnauthorizedError (no such user), AccountInactiveError, InvalidTokenError (the session has ended)
 * @throws ValidationError for a long name, a field that cannot be written, or a value that `signup.schema` rejects
 */
export async function updateProfile(ctx: AuthContext, { userId, name, fields = {}, session }: ProfileUpdate): Promise<PublicUser> {
  const newName = name === undefined ? {} : { name: requireName(name) }
  // Before the transaction, because the host's schema may be slow.
  const accepted = await validateFields(ctx, await findActiveUser(ctx, userId), fields)
  const changes = { ...newName, ...(Object.keys(accepted).length > 0 && { fields: accepted }) }
  return transaction(ctx, async (ctx) => {
    const user = await lockActive(ctx, userId)
    await holdSession(ctx, session)
    if (Object.keys(changes).length === 0) return toPublicUser(user)
    await ctx.store.users.update(userId, { ...changes, updatedAt: ctx.now() })
    return toPublicUser(await lockActive(ctx, userId)) // the database can change a value when it stores the value
  })
}

async function lockActive(ctx: AuthContext, userId: string): Promise<UserRecord> {
  const user = await ctx.store.users.lock(userId)
  if (!user) throw new UnauthorizedError()
  if (!user.isActive) throw new AccountInactiveError()
  return user
}

/** An empty name becomes null. @throws ValidationError for more than 120 characters */
export function requireName(name: string | null | undefined): string | null {
  if (name === undefined || name === null || name === '') return null
  if (name.length <= 120) return name
  throw new ValidationError({ details: { errors: [{ path: 'name', rule: 'string.max' }] } })
}

/**
 * `signup.schema` validates the new values together with the stored ones. Only errors about the sent fields count, because a sign-up can
 * require more fields (terms, a captcha).
 * @throws ValidationError
 */
async function validateFields(ctx: AuthContext, user: UserRecord, sent: HostFields): Promise<HostFields> {
  refuseOthers(ctx, sent)
  const { schema } = ctx.signup
  if (!schema || Object.keys(sent).length === 0) return sent
  const stored = storedValues(user)
  const { issues, value } = await askSchema(schema, { ...stored, ...sent })
  const ofWhole = issues.some(isOfWhole) ? await newOnes(schema, stored, issues.filter(isOfWhole)) : []
  const errors = [...issues.filter(({ path: [first] }) => first !== undefined && Object.hasOwn(sent, first)), ...ofWhole]
  if (errors.length > 0)
    throw new ValidationError({ details: { errors: errors.map(({ path, rule }) => ({ path: ['fields', ...path].join('.'), rule })) } })
  // A Standard Schema with issues returns no values. None of them counts here, so the sent values are used.
  if (!value) return sent
  if (!isJoiSchema(schema)) announceDroppedFields(ctx, schema, sent, value)
  return Object.fromEntries(Object.keys(sent).flatMap((name) => (value[name] === undefined ? [] : [[name, value[name]]])))
}

/** A rule about several fields together has no path. */
function isOfWhole({ path }: SchemaIssue): boolean {
  return path.length === 0
}

/** Leaves out issues that the stored values alone have. */
async function newOnes(schema: SignupSchema, stored: object, issues: readonly SchemaIssue[]): Promise<readonly SchemaIssue[]> {
  const before = (await askSchema(schema, stored)).issues.filter(isOfWhole)
  if (issues.length > before.length) return issues
  return issues.filter(({ rule }) => !before.some((known) => known.rule === rule))
}

/** Without nulls, because schemas expect an absent value. */
function storedValues({ email, name, fields = {} }: UserRecord): object {
  return Object.fromEntries(Object.entries({ email, name, ...fields }).filter(([, value]) => value !== null))
}

export function writableFields({ store }: Pick<AuthContext, 'store'>): string[] {
  return [...(store.users.hostFields ?? [])].flatMap(([name, { readOnly }]) => (readOnly ? [] : [name]))
}

/** Leaves out a field whose value is undefined. */
export function pickWritable(ctx: Pick<AuthContext, 'store'>, body: object): HostFields {
  const given = new Map<string, unknown>(Object.entries(body))
  return Object.fromEntries(writableFields(ctx).flatMap((name) => (given.get(name) === undefined ? [] : [[name, given.get(name)]])))
}

/** @throws ValidationError with the same rule for unknown, read-only and private read-only fields */
function refuseOthers(ctx: Pick<AuthContext, 'store'>, fields: object): void {
  const writable = writableFields(ctx)
  const others = Object.keys(fields).filter((name) => !writable.includes(name))
  if (others.length > 0)
    throw new ValidationError({ details: { errors: others.map((name) => ({ path: `fields.${name}`, rule: 'any.unknown' })) } })
}

const announced = new WeakMap<StandardSchema, Set<string>>()

/** When a person first sends the field. Not at boot, because a Standard Schema does not list its keys. */
export function announceDroppedFields(ctx: AuthContext, schema: StandardSchema, sent: object, value: object): void {
  const known = announced.get(schema) ?? new Set()
  announced.set(schema, known)
  const dropped = writableFields(ctx).filter((name) => Object.hasOwn(sent, name) && !Object.hasOwn(value, name) && !known.has(name))
  for (const field of dropped) {
    known.add(field)
    ctx.logger.warn(
      { field },
      `doorward: a person sent the field ${field}, and signup.schema dropped it, so it is not written. Describe it in signup.schema, or map it as readOnly in users.fields. ${seeTroubleshooting('field-dropped-by-schema')}`,
    )
  }
}
