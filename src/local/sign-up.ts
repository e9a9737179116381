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
  /** Of the mail. Default: `defaultLocale`. */
  locale?: Locale | undefined
  /** What else the host's signup schema let through; handed to `onSignup`. */
  extra?: object | undefined
  /** Values of the host's own fields, read-only ones too: the caller is trusted, and no schema is asked. */
  fields?: HostFields | undefined
  /** The User-Agent header of the signup: the mail names the browser. */
  userAgent?: string | null | undefined
  /** False: the address of a pending account counts as taken, too. Default true. */
  mayRepeat?: boolean | undefined
}

/** What became of a signup; a taken address is told to nobody by itself. */
export type Signup<Session = AnyLoginResult> =
  | {
      kind: 'made'
      user: UserRecord
      /** Of an account that waits for its activation; null where the host has to be asked first. */
      link: LinkToken | null
      /** Of an account born active, when one was asked for. */
      session: Session | null
      mark: SignupMark
      /** It replaced an older signup, and its mail is counted already. */
      isRepeat: boolean
    }
  /** `owner` as it was seen; null when somebody took the address at this moment. */
  | { kind: 'taken'; owner: UserRecord | null }
  /** An older signup waits for its activation, and no mail may be sent for this one. */
  | { kind: 'unchanged' }
  /** The address is free, but the database refused a value of the host's own fields. */
  | { kind: 'refused'; error: Error }

/**
 * A local account: active at once with `autoActivate`, else waiting for its link. The account, its link and what the
 * host's `onSignup` writes are one unit: either all of it is there, or nothing is. The mail is `sendFirstLink`'s. With the address of
 * a pending account it replaces the older signup.
 * @param open begins the session of an account that is born active; null: none is wanted
 * @throws ValidationError (address, name, password), ServiceUnavailableError, ForbiddenError (`admit` said no), and what `admit` and
 *   `onSignup` throw
 */
export async function signUp(ctx: AuthContext, input: SignUpInput, open: OpenSession<AnySession> | null): Promise<Signup> {
  const email = requireEmail(input.email)
  const name = requireName(input.name)
  const fields = requireFields(ctx, input)
  const body = { ...withoutPassword(input), email, name }
  // Before anything depends on whether the address is taken.
  if ((await ctx.signup.admit?.(body)) === false) throw new ForbiddenError()
  // A taken address costs the same hash: the time of the answer says little about it.
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

/** What the row has of a password. Without passwords: a marker, which no password verifies against. */
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

/** Mails a new account its activation link. Null: it is active. */
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

/** For a signup whose answer does not say that the address is taken: its owner is told instead. */
export async function tellOwner(ctx: AuthContext, seen: UserRecord | null, address: string, locale: Locale): Promise<void> {
  const owner = seen ?? (await ctx.store.users.findByEmail(requireEmail(address)))
  if (owner) mailNotice(ctx, owner, 'address_taken', locale)
}

/** What a signup does in its transaction, beside the row. */
interface Making {
  body: object
  open: OpenSession<AnySession> | null
  mark: SignupMark
  mayRepeat: boolean
}

/** The session is for nobody: the account waits for its link. */
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

/** What the database says of our own row is looked into; what `onSignup` throws is the host's affair, and thrown as it is. */
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

/** A duplicate is the address, unless a column of the host's own is unique too. @throws what is no matter of a value */
async function lookInto(ctx: AuthContext, { email, fields }: NewUser, error: unknown): Promise<Signup> {
  const isDuplicate = error instanceof DuplicateRecordError
  if (isDuplicate && !fields) return { kind: 'taken', owner: null }
  if (!(error instanceof Error) || error instanceof AppError || !fields) throw error
  // In a transaction of the host's, nothing can be asked after a failed statement.
  const owner = isDuplicate ? await ctx.store.users.findByEmail(email).catch(() => undefined) : null
  if (owner !== null) return { kind: 'taken', owner: owner ?? null }
  return { kind: 'refused', error: isDuplicate ? new ConflictError({ cause: error }) : error }
}

type MadeSignup = Signup<AnyLoginResult | PostponedLogin> & { kind: 'made' }

async function complete(ctx: AuthContext, inserted: UserRecord, { body, open, mark }: Making, isRepeat: boolean): Promise<MadeSignup> {
  await ctx.signup.onSignup?.(inserted, body, ctx.store, { trx: transactionOf(ctx.store), isRepeat })
  // The hook may have changed the account, and then it decides: no session begins on one that it made inactive.
  const user = ctx.signup.onSignup ? await ctx.store.users.lock(inserted.id) : inserted
  if (!user) throw new InternalError({ cause: new Error('onSignup removed the account.') })
  const made = { kind: 'made', user, mark, isRepeat } as const
  if (user.isActive)
    return {
      ...made,
      link: null,
      session: open && (await finishOrPostpone(ctx, user, { amr: hasPassword(user) ? ['pwd'] : [], provider: null }, open)),
    }
  // A host that may refuse links is asked first, outside of the unit; an account the hook has closed waits for no link.
  const isAsked = ctx.refusesEmailLink || !(await isPending(ctx, user))
  const link = isAsked ? null : await issueLink(ctx, user.id, 'ACTIVATION', signupMarkToText(mark))
  return { ...made, link, session: null }
}

/**
 * The host's fields for the new row; none where none is given, since an adapter may know none. All is refused here that the store would
 * refuse, since only a new address gets as far as the store. A password in clear text gets into no column.
 * @throws ValidationError for a field that does not exist, that equals the password, or that no column can hold
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

/** A form may send the password twice: what equals it goes no further, whatever the host calls it. */
function withoutPassword({ extra = {}, password }: SignUpInput): Record<string, unknown> {
  return Object.fromEntries(Object.entries(extra).filter(([, value]) => password === undefined || value !== password))
}

function newAccount(ctx: AuthContext, given: NewestSignup): NewUser {
  const now = ctx.now()
  const isActive = ctx.settings.autoActivate
  return newUser(now, { ...given, isActive, activatedAt: isActive ? now : null })
}
