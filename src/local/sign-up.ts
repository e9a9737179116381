import { requirePasswords } from '../config/has-passwords'
import { type AuthContext, unitOfWork } from '../context'
import { AppError, ConflictError, ForbiddenError, InternalError, ValidationError } from '../errors'
import { newSignupMark, type SignupMark, signupMarkToText } from '../first-proof/signup-binding'
import { requireEmail } from '../http/email-address'
import type { Locale } from '../http/locale'
import { issueLink, type LinkToken } from '../mailbox/email-link'
import { isPending } from '../mailbox/is-pending'
import { ACTIVATION_WITHHELD } from '../mailbox/refuses-email-link'
import { mailLink, mailNotice, mayMail } from '../mailbox/send-mail'
import { checkPassword } from '../passwords/check-password'
import { hasPassword, unusablePassword } from '../passwords/unusable-password'
import { requireName } from '../profile/require-name'
import { announceLogin } from '../session/announce-login'
import { finishOrPostpone, openPostponed, type PostponedLogin } from '../session/claims-of-login'
import type { OpenSession } from '../session/finish-login'
import type { AnyLoginResult, AnySession } from '../session/open-session'
import { DuplicateRecordError, type HostFields, type NewUser, type UserRecord } from '../store/auth-store'
import { isSingleValue } from '../store/knex/host-fields'
import { transactionOf } from '../store/knex/knex-store'
import { newUser } from '../store/new-user'
import { sendActivation } from './request-activation'
import { type NewestSignup, signUpAgain } from './sign-up-again'

export interface SignUpInput {
  email: string
  /** Required, unless `passwordLogin` is off: then it is refused. */
  password?: string | undefined
  /** At most 120 characters. */
  name?: string | null | undefined
  /** Language of the mail. Default: `defaultLocale`. */
  locale?: Locale | undefined
  /** Other values that the host's sign-up schema returned; passed to `onSignup`. */
  extra?: object | undefined
  /** Values of the host's own fields, also read-only ones. The caller is trusted, so no schema validates them. */
  fields?: HostFields | undefined
  /** The User-Agent header of the sign-up: the mail names the browser. */
  userAgent?: string | null | undefined
  /** False: the address of a pending account counts as taken, too. Default true. */
  mayRepeat?: boolean | undefined
}

/** The result of a sign-up. The caller decides whether to reveal a taken address. */
export type Signup<Session = AnyLoginResult> =
  | {
      kind: 'made'
      user: UserRecord
      /** The link of a pending account. Null if the host's `refusesEmailLink` must be called first. */
      link: LinkToken | null
      /** The session of an account that is active at once, if the caller wanted one. */
      session: Session | null
      mark: SignupMark
      /** True if it replaced an earlier sign-up; then its mail already counts against the rate limit. */
      isRepeat: boolean
    }
  /** `owner` as it was read; null if another request took the address meanwhile. */
  | { kind: 'taken'; owner: UserRecord | null }
  /** An earlier sign-up is still pending, and no mail may be sent for this one. */
  | { kind: 'unchanged' }
  /** The address is free, but the database rejected a value of the host's own fields. */
  | { kind: 'refused'; error: Error }

/**
 * Creates a local account: active at once with `autoActivate`, else pending. The account, its link and what the host's `onSignup` writes
 * are one transaction. `sendFirstLink` mails the link. For the address of a pending account, the sign-up replaces the earlier one.
 * @param open begins the session of an account that is active at once; null if none is wanted
 * @throws ValidationError (address, name, password), ServiceUnavailableError, ForbiddenError (`admit` returned false), and what `admit` and
 *   `onSignup` throw
 */
export async function signUp(ctx: AuthContext, input: SignUpInput, open: OpenSession<AnySession> | null): Promise<Signup> {
  const email = requireEmail(input.email)
  const name = requireName(input.name)
  const fields = requireFields(ctx, input)
  const body = { ...withoutPassword(input), email, name }
  // Before anything depends on whether the address is taken.
  if ((await ctx.signup.admit?.(body)) === false) throw new ForbiddenError()
  // A taken address also needs the hash, so that the response time reveals little about it.
  const given = { email, name, ...fields, ...(await hashOrMarker(ctx, input.password, { email, name })) }
  const made: Making = { body, open, mark: newSignupMark(ctx, input.userAgent), mayRepeat: input.mayRepeat ?? true }
  const owner = await ctx.store.users.findByEmail(email)
  if (owner) return replaceAccount(ctx, owner, given, made)
  const account = await insertAccount(ctx, newAccount(ctx, given), made)
  if (account.kind !== 'made') return account
  ctx.events.emit('signup', { userId: account.user.id, by: 'pwd' })
  const session = account.session && open && (await openPostponed(ctx, account.session, open))
  if (session) announceLogin(ctx, session)
  return { ...account, session }
}

/** Returns the password columns of the row. Without passwords, a marker that no password matches. */
async function hashOrMarker(
  ctx: AuthContext,
  password: string | undefined,
  who: { email: string; name: string | null },
): Promise<Pick<NewUser, 'hashedPassword' | 'passwordSetAt'>> {
  if (password === undefined && !ctx.settings.passwordLogin) return { hashedPassword: unusablePassword(), passwordSetAt: null }
  requirePasswords(ctx.settings)
  if (password === undefined) throw new ValidationError({ details: { errors: [{ path: 'password', rule: 'any.required' }] } })
  await checkPassword(ctx, password, who)
  return { hashedPassword: await ctx.hasher.hash(password), passwordSetAt: ctx.now() }
}

/** Mails a new account its activation link. Returns null if the account is active. */
export async function sendFirstLink(
  ctx: AuthContext,
  { user, link, mark, isRepeat }: Pick<Signup & { kind: 'made' }, 'user' | 'link' | 'mark' | 'isRepeat'>,
  locale: Locale,
): Promise<LinkToken | typeof ACTIVATION_WITHHELD | null> {
  if (user.isActive) return null
  if (!link) return (await sendActivation(ctx, user, locale, { mark })) ?? ACTIVATION_WITHHELD
  if (isRepeat || (await mayMail(ctx, user, 'ACTIVATION', { besides: link })))
    mailLink(ctx, user, 'activation', link, locale, { signup: mark })
  return link
}

/** Mails the owner of a taken address, if the response does not reveal that it is taken. */
export async function tellOwner(ctx: AuthContext, seen: UserRecord | null, address: string, locale: Locale): Promise<void> {
  const owner = seen ?? (await ctx.store.users.findByEmail(requireEmail(address)))
  if (owner) mailNotice(ctx, owner, 'address_taken', locale)
}

/** What a sign-up does in its transaction, besides the row. */
interface Making {
  body: object
  open: OpenSession<AnySession> | null
  mark: SignupMark
  mayRepeat: boolean
}

/** Replaces an earlier sign-up. Opens no session, because the account stays pending. */
async function replaceAccount(ctx: AuthContext, owner: UserRecord, signup: NewestSignup, making: Making): Promise<Signup> {
  const refusals = new Set<unknown>()
  try {
    const repeat = await signUpAgain(ctx, owner, making.mayRepeat ? signup : null, async (ctx, user) => {
      try {
        return await complete(ctx, user, { ...making, open: null }, true)
      } catch (error) {
        refusals.add(error) // the host's own
        throw error
      }
    })
    if (repeat.kind === 'replaced') return { ...repeat.made, session: null }
    return repeat.kind === 'unchanged' ? { kind: 'unchanged' } : { kind: 'taken', owner }
  } catch (error) {
    const isOfValue = error instanceof DuplicateRecordError || (error instanceof Error && error.name === 'DriverError')
    if (refusals.has(error) || !isOfValue || !signup.fields) throw error
    return { kind: 'refused', error: error instanceof DuplicateRecordError ? new ConflictError({ cause: error }) : error }
  }
}

/** Inserts the account. An error of the database for our own row is examined; an error of `onSignup` is thrown as it is. */
async function insertAccount(ctx: AuthContext, account: NewUser, making: Making): Promise<Signup<AnyLoginResult | PostponedLogin>> {
  const refusals = new Set<unknown>()
  const insert = async (ctx: AuthContext) => {
    try {
      return await ctx.store.users.insert(account, { by: 'signup' })
    } catch (error) {
      refusals.add(error)
      throw error
    }
  }
  try {
    return await unitOfWork(ctx, async (ctx) => complete(ctx, await insert(ctx), making, false))
  } catch (error) {
    if (!refusals.has(error)) throw error
    return lookInto(ctx, account, error)
  }
}

/**
 * Turns an error of the insert into a result. A duplicate concerns the address, unless a column of the host's is unique too.
 * @throws errors that no value caused
 */
async function lookInto(ctx: AuthContext, { email, fields }: NewUser, error: unknown): Promise<Signup> {
  const isDuplicate = error instanceof DuplicateRecordError
  if (isDuplicate && !fields) return { kind: 'taken', owner: null }
  if (!(error instanceof Error) || error instanceof AppError || !fields) throw error
  // In a transaction of the host's, no query works after a failed statement.
  const owner = isDuplicate ? await ctx.store.users.findByEmail(email).catch(() => undefined) : null
  if (owner !== null) return { kind: 'taken', owner: owner ?? null }
  return { kind: 'refused', error: isDuplicate ? new ConflictError({ cause: error }) : error }
}

type MadeSignup = Signup<AnyLoginResult | PostponedLogin> & { kind: 'made' }

async function complete(ctx: AuthContext, inserted: UserRecord, { body, open, mark }: Making, isRepeat: boolean): Promise<MadeSignup> {
  await ctx.signup.onSignup?.(inserted, body, ctx.store, { trx: transactionOf(ctx.store), isRepeat })
  // The hook may have changed the account. No session begins if it made the account inactive.
  const user = ctx.signup.onSignup ? await ctx.store.users.lock(inserted.id) : inserted
  if (!user) throw new InternalError({ cause: new Error('onSignup removed the account.') })
  const made = { kind: 'made', user, mark, isRepeat } as const
  if (user.isActive)
    return {
      ...made,
      link: null,
      session: open && (await finishOrPostpone(ctx, user, { amr: hasPassword(user) ? ['pwd'] : [], provider: null }, open)),
    }
  // A host that may refuse links is called first, outside the transaction. An account that the hook deactivated gets no link.
  const isAsked = ctx.refusesEmailLink || !(await isPending(ctx, user))
  const link = isAsked ? null : await issueLink(ctx, user.id, 'ACTIVATION', signupMarkToText(mark))
  return { ...made, link, session: null }
}

/**
 * Returns the host's fields for the new row, or nothing if none is given, because an adapter may not support them. Rejects everything that
 * the store would reject, because only a new address gets as far as the store. A column must not get the password in clear text.
 * @throws ValidationError for a field that does not exist, that equals the password, or that no column can store
 */
function requireFields(ctx: AuthContext, { fields = {}, password }: SignUpInput): Pick<NewUser, 'fields'> {
  const names = Object.keys(fields)
  const errors = names.flatMap((path) => {
    if (!ctx.store.users.hostFields?.has(path)) return [{ path, rule: 'any.unknown' }]
    if (password !== undefined && fields[path] === password) return [{ path, rule: 'equals_password' }]
    return fields[path] === undefined || isSingleValue(fields[path]) ? [] : [{ path, rule: 'unstorable' }]
  })
  if (errors.length > 0) throw new ValidationError({ details: { errors } })
  return names.length > 0 ? { fields } : {}
}

/** Removes every value that equals the password, because a form may send it twice under another name. */
function withoutPassword({ extra = {}, password }: SignUpInput): Record<string, unknown> {
  return Object.fromEntries(Object.entries(extra).filter(([, value]) => password === undefined || value !== password))
}

function newAccount(ctx: AuthContext, given: NewestSignup): NewUser {
  const now = ctx.now()
  const isActive = ctx.settings.autoActivate
  return newUser(now, { ...given, isActive, activatedAt: isActive ? now : null })
}
