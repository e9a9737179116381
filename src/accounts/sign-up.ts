import { type AuthContext, transaction } from '../context'
import { requirePasswords } from '../core/config/every-setting'
import { AppError, ConflictError, ForbiddenError, InternalError, ServiceUnavailableError, ValidationError } from '../core/errors'
import { requireEmail } from '../http/email-address'
import type { Locale } from '../http/locale'
import type { LinkCode } from '../mail/mail-queue'
import { oncePerChallenge, type SignupPasskey, useSignupChallenge, verifySignupPasskey } from '../passkeys/sign-up'
import type { PresentedPasskey } from '../passkeys/verify-passkey'
import { checkPassword } from '../passwords/check-password'
import { hashPassword, hasPassword, unusablePassword } from '../passwords/verify-password'
import { isLeaving } from '../sessions/account-state'
import type { AnyLoginResult, LoginClient } from '../sessions/login'
import { type BegunLogin, finishLogin, startLogin } from '../sessions/start-login'
import { DuplicateRecordError, type HostFields, type InvitationRecord, type NewUser, type UserRecord } from '../store/auth-store'
import { isSingleValue } from '../store/knex/host-fields'
import { transactionOf } from '../store/knex/knex-store'
import { neverEnds, newUser } from '../store/user-records'
import { ACTIVATION_WITHHELD, isPending, issueLink, type LinkToken, refusesEmailLink } from './email-links/email-link'
import { mailLink, mailNotice, mayMail } from './email-links/send-mail'
import { decidesEntry, keepMark, newSignupMark, type SignupMark, signupMarkToText } from './email-verification/signup-binding'
import { announceSignupPasskey, endSignupPasskey, type SignupPasskeyEnd } from './email-verification/signup-passkey'
import { retryingWithoutFields } from './email-verification/verify-address'
import { completeFirstActivation, firstActivation } from './first-activation'
import type { CodeRequest } from './mailed-codes/code-request'
import { codeIssuer, type IssueCode } from './mailed-codes/issue-code'
import { sendActivation } from './request-link'
import { hidesTakenAddress, isOfPending, type NewestSignup, signUpAgain } from './sign-up-again'
import { announceTakeOver, emitTakeOver, takeOver, tellHostOfTakeOver } from './take-over'
import { requireName } from './update-profile'

export interface SignUpInput {
  email: string
  /** Required if `passwordLogin` is true. With `passwordLogin: false`, the sign-up rejects a password. */
  password?: string | undefined
  /** At most 120 characters. */
  name?: string | null | undefined
  /** The language of the mail. Default: `defaultLocale`. */
  locale?: Locale | undefined
  /** Other values that the host's sign-up schema returned. doorward passes them to `onSignup`. */
  extra?: object | undefined
  /** Values of the host's own fields, also read-only ones. No schema validates them, because the caller is trusted. */
  fields?: HostFields | undefined
  /** The User-Agent header of the sign-up. The mail names the browser. */
  userAgent?: string | null | undefined
  /** If false, the address of a pending account also counts as taken. Default true. */
  mayRepeat?: boolean | undefined
}

/** The caller decides whether the response reveals a taken address. */
export type Signup<Session = AnyLoginResult> =
  | {
      kind: 'made'
      user: UserRecord
      /** Null: the account is not pending, or the host's `refusesEmailLink` must be called first. */
      link: LinkToken | null
      /** Of an account that is active immediately, if the caller asked for a session. */
      session: Session | null
      mark: SignupMark
      /** Beside the link. Null: the mail has the link alone, or `link` is null. */
      code: LinkCode | null
      /** Of an account that is active immediately. */
      passkey?: SignupPasskeyEnd
      /** True if an earlier sign-up is pending. The mail then already counts against the rate limit. */
      isRepeat: boolean
    }
  /** `owner` is the account before the transaction; null if another request took the address meanwhile. */
  | { kind: 'taken'; owner: UserRecord | null }
  /** An earlier sign-up is pending, and no mail may be sent for this one. `mark`: of the earlier one, if the same person made it. */
  | { kind: 'unchanged'; mark: SignupMark | null }
  /** The address is free, but the database rejected a value of the host's own fields. */
  | { kind: 'refused'; error: Error }

/** What the person typed keeps every rule. */
export interface CheckedSignUp extends SignUpInput {
  readonly given: Pick<NewestSignup, 'email' | 'name' | 'fields'>
}

/** The rules of a body. Looks at no account. @throws ValidationError */
export async function checkSignUp(ctx: AuthContext, input: SignUpInput, { byPasskey = false } = {}): Promise<CheckedSignUp> {
  const email = requireEmail(input.email)
  const name = requireName(input.name)
  const fields = requireFields(ctx, input)
  if (!byPasskey) await requirePassword(ctx, input.password, { email, name })
  return { ...input, given: { email, name, ...fields } }
}

/** As `signUpChecked`. @throws ValidationError too */
export async function signUp(
  ctx: AuthContext,
  input: SignUpInput,
  client: LoginClient | null,
  options: { passkey?: PresentedPasskey | null; codeRequest?: CodeRequest | null; invitation?: InvitationRecord | null } = {},
): Promise<Signup> {
  return signUpChecked(ctx, await checkSignUp(ctx, input, { byPasskey: Boolean(options.passkey) }), client, options)
}

/**
 * Without `autoActivate` the account waits for its activation (pending); `sendFirstLink` mails the link. See `signUpAgain`. One transaction
 * writes the account, its link and the rows of the host's `onSignup`.
 * @param client gets a session if the account is active immediately; null for no session
 * @param shown the new passkey of a sign-up without a password
 * @param codeRequest null: the mail has the link alone
 * @param invitation the caller has checked it. If its token was mailed, the address is verified and the account is active at once
 * @throws ServiceUnavailableError, ForbiddenError (`admit` returned false), PasskeyInvalidError, and the errors of `admit`
 * and `onSignup`
 */
export async function signUpChecked(
  ctx: AuthContext,
  { given: typed, ...input }: CheckedSignUp,
  client: LoginClient | null,
  {
    passkey: shown = null,
    codeRequest = null,
    invitation = null,
  }: { passkey?: PresentedPasskey | null; codeRequest?: CodeRequest | null; invitation?: InvitationRecord | null } = {},
): Promise<Signup> {
  const { email, name } = typed
  const body = { ...withoutPassword(input), email, name }
  // Before the check whether the address is taken, so that an error of `admit` does not reveal that.
  if ((await ctx.signup.admit?.(body)) === false) throw new ForbiddenError()
  const passkey = shown && (await verifySignupPasskey(ctx, email, shown))
  // Hashes and verifies the password once for every address, so that the response time reveals little about it.
  const credential = passkey ? noPassword() : await hashOrMarker(ctx, input.password)
  const given = { ...typed, ...credential }
  const { password, userAgent, mayRepeat = true } = input
  const { issueCode } = await codeIssuer(ctx, codeRequest, { email })
  const making: Making = { body, client, password, passkey, userAgent, mayRepeat, issueCode, locale: input.locale, invitation }
  const make = () => makeAccount(ctx, given, making)
  return passkey ? oncePerChallenge(ctx, passkey, make, ({ kind }) => kind === 'refused') : make()
}

async function makeAccount(ctx: AuthContext, given: NewestSignup, making: Making): Promise<Signup> {
  const { password, mayRepeat, invitation } = making
  const owner = await ctx.store.users.findByEmail(given.email)
  if (owner) return replaceAccount(ctx, owner, given, making)
  if (mayRepeat && hidesTakenAddress(ctx.settings)) await isOfPending(ctx, null, { password, values: given })
  const account = await insertAccount(ctx, newAccount(ctx, given, invitation), making)
  if (account.kind === 'taken' && account.owner) return replaceAccount(ctx, account.owner, given, making) // taken since the look-up
  if (account.kind !== 'made') return account
  return finishSignup(ctx, account, making.locale)
}

/** After the commit. */
async function finishSignup(ctx: AuthContext, account: MadeSignup, locale: Locale | undefined): Promise<Signup> {
  if (account.passkey) announceSignupPasskey(ctx, account.user, account.passkey, locale)
  const session = account.session && (await finishLogin(ctx, account.session))
  return { ...account, session }
}

type PasswordColumns = Pick<NewUser, 'hashedPassword' | 'passwordSetAt'>

function noPassword(): PasswordColumns {
  return { hashedPassword: unusablePassword(), passwordSetAt: null }
}

async function requirePassword(ctx: AuthContext, password: string | undefined, who: { email: string; name: string | null }): Promise<void> {
  if (password === undefined && !ctx.settings.passwordLogin) return
  requirePasswords(ctx.settings)
  if (password === undefined) throw new ValidationError({ details: { errors: [{ path: 'password', rule: 'any.required' }] } })
  await checkPassword(ctx, password, who)
}

async function hashOrMarker(ctx: AuthContext, password: string | undefined): Promise<PasswordColumns> {
  if (password === undefined) return noPassword()
  return { hashedPassword: await hashPassword(ctx, password), passwordSetAt: ctx.now() }
}

/** Null if the account is active. */
export async function sendFirstLink(
  ctx: AuthContext,
  { user, link, mark, code, isRepeat }: Pick<Signup & { kind: 'made' }, 'user' | 'link' | 'mark' | 'code' | 'isRepeat'>,
  locale: Locale,
  codeRequest: CodeRequest | null = null,
): Promise<LinkToken | typeof ACTIVATION_WITHHELD | null> {
  if (user.isActive) return null
  if (!link) return (await sendActivation(ctx, user, locale, { mark, code: codeRequest })) ?? ACTIVATION_WITHHELD
  if (isRepeat || (await mayMail(ctx, user, 'ACTIVATION', { besides: link })))
    mailLink(ctx, user, 'activation', link, locale, { signup: mark, code })
  return link
}

/** The response of the sign-up does not reveal that the address is taken. */
export async function tellOwner(
  ctx: AuthContext,
  seen: UserRecord | null,
  { email, hasInvitation }: { email: string; hasInvitation: boolean },
  locale: Locale,
): Promise<void> {
  const owner = seen ?? (await ctx.store.users.findByEmail(requireEmail(email)))
  if (owner)
    mailNotice(ctx, owner, 'address_taken', locale, {
      ...(hasInvitation && { hasInvitation }),
      ...(isLeaving(owner) && { isLeaving: true }),
    })
}

interface Making {
  body: object
  client: LoginClient | null
  password: string | undefined
  /** Null: a sign-up without a passkey. */
  passkey: SignupPasskey | null
  userAgent: string | null | undefined
  mayRepeat: boolean
  issueCode: IssueCode
  locale: Locale | undefined
  invitation: InvitationRecord | null
}

/** Opens no session, because a pending account stays pending. */
async function replaceAccount(ctx: AuthContext, owner: UserRecord, values: NewestSignup, making: Making): Promise<Signup> {
  const refusals = new Set<unknown>()
  if (making.passkey) await useSignupChallenge(ctx, owner.id, making.passkey)
  if (making.invitation?.isMailed) return takePending(ctx, owner, values, { ...making, invitation: making.invitation })
  try {
    const invitation = making.invitation?.id ?? null
    const repeat = await signUpAgain(ctx, owner, { ...making, values, invitation }, async (ctx, user) => {
      try {
        return await complete(ctx, user, { ...making, client: null }, true)
      } catch (error) {
        refusals.add(error) // an error of the host's `onSignup`
        throw error
      }
    })
    if (repeat.kind === 'replaced') {
      if (repeat.made.passkey) announceSignupPasskey(ctx, repeat.made.user, repeat.made.passkey, making.locale)
      return { ...repeat.made, session: null }
    }
    if (repeat.kind === 'taken') return { kind: 'taken', owner }
    if (repeat.kind === 'unchanged') return { kind: 'unchanged', mark: null }
    const { user, mark, link, code } = repeat
    return link ? { kind: 'made', user, mark, link, code, session: null, isRepeat: true } : { kind: 'unchanged', mark }
  } catch (error) {
    const isOfValue = error instanceof DuplicateRecordError || (error instanceof Error && error.name === 'DriverError')
    if (refusals.has(error) || !isOfValue || !values.fields) throw error
    return { kind: 'refused', error: error instanceof DuplicateRecordError ? new ConflictError({ cause: error }) : error }
  }
}

/** The mailed token verifies the address, so the sign-up takes over a pending account of the address, which may be another person's. */
async function takePending(
  ctx: AuthContext,
  owner: UserRecord,
  { hashedPassword, passwordSetAt, name, fields }: NewestSignup,
  making: Making & { invitation: InvitationRecord },
): Promise<Signup> {
  if (await refusesEmailLink(ctx, owner)) return { kind: 'taken', owner }
  const taken = await retryingWithoutFields(ctx, (clearing) =>
    transaction(ctx, async (ctx) => {
      const locked = await ctx.store.users.lock(owner.id)
      if (locked?.email !== owner.email || !(await isPending(ctx, locked))) return null
      const now = ctx.now()
      const { changes, ...takenOver } = await takeOver(ctx, locked, clearing)
      const activation = firstActivation(ctx, { isApproved: true })
      await ctx.store.users.update(locked.id, {
        ...changes,
        ...activation,
        hashedPassword,
        passwordSetAt,
        ...(name !== null && { name }),
        ...((changes.fields || fields) && { fields: { ...changes.fields, ...fields } }),
        emailVerifiedAt: now,
        updatedAt: now,
      })
      const user = await ctx.store.users.lock(locked.id)
      if (!user) throw new InternalError({ cause: new Error('The account is gone.') })
      await tellHostOfTakeOver(ctx, user)
      emitTakeOver(ctx, user, takenOver)
      return { made: await complete(ctx, user, making, true), takenOver }
    }),
  )
  if (!taken) return { kind: 'taken', owner }
  announceTakeOver(ctx, taken.made.user, taken.takenOver, { locale: making.locale })
  return finishSignup(ctx, taken.made, making.locale)
}

/** An error of our own INSERT can become a result, for example a taken address. An error of `onSignup` passes through. */
async function insertAccount(ctx: AuthContext, account: NewUser, making: Making): Promise<Signup<BegunLogin>> {
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
    return await transaction(ctx, async (ctx) => {
      const made = await complete(ctx, await insert(ctx), making, false)
      ctx.events.emit('signup', { userId: made.user.id, by: making.passkey ? 'passkey' : 'pwd' })
      return made
    })
  } catch (error) {
    if (!refusals.has(error)) throw error
    return lookInto(ctx, account, error)
  }
}

/** Usually the address is the duplicate, but a unique column of the host can be too. @throws the error if no value caused it */
async function lookInto(ctx: AuthContext, { email, fields }: NewUser, error: unknown): Promise<Exclude<Signup, { kind: 'made' }>> {
  const isDuplicate = error instanceof DuplicateRecordError
  if (!(error instanceof Error) || error instanceof AppError || !(fields || isDuplicate)) throw error
  // In the host's transaction this query can fail, because none works after a failed statement. The address then counts as taken.
  const owner = isDuplicate ? await ctx.store.users.findByEmail(email).catch(() => undefined) : null
  if (owner !== null || !fields) return { kind: 'taken', owner: owner ?? null }
  return { kind: 'refused', error: isDuplicate ? new ConflictError({ cause: error }) : error }
}

type MadeSignup = Signup<BegunLogin> & { kind: 'made' }

async function complete(
  ctx: AuthContext,
  inserted: UserRecord,
  { body, client, passkey, userAgent, issueCode, mayRepeat, invitation }: Making,
  isRepeat: boolean,
): Promise<MadeSignup> {
  if (passkey && !isRepeat) await useSignupChallenge(ctx, inserted.id, passkey) // `replaceAccount` has done so already
  await ctx.signup.onSignup?.(inserted, body, ctx.store, { trx: transactionOf(ctx.store), isRepeat })
  // `onSignup` may have changed the account. An inactive one gets no session.
  const user = ctx.signup.onSignup ? await ctx.store.users.lock(inserted.id) : inserted
  if (!user) throw new InternalError({ cause: new Error('onSignup removed the account.') })
  const carried = { passkey: passkey?.pending ?? null, invitation: invitation?.id ?? null }
  // Only the service makes sign-ups that cannot repeat.
  const mark = { ...newSignupMark(ctx, user, userAgent, carried), isApproved: !mayRepeat }
  const made = { kind: 'made', user, mark, isRepeat } as const
  if (user.isActive) {
    await completeFirstActivation(ctx, user, invitation?.id ?? null, { isNew: !isRepeat })
    return {
      ...made,
      link: null,
      code: null,
      ...(passkey && { passkey: await passkeyOfActive(ctx, user, passkey) }),
      session: client && (await startLogin(ctx, client, user, { amr: hasPassword(user) ? ['pwd'] : [], provider: null })),
    }
  }
  // `refusesEmailLink` is called later, outside the transaction. An account that `onSignup` deactivated gets no link.
  const waits = await isPending(ctx, user)
  const isAsked = ctx.refusesEmailLink || !waits
  const link = isAsked ? null : await issueLink(ctx, user.id, 'ACTIVATION', signupMarkToText(mark))
  if (link === null && waits && decidesEntry(ctx, mark)) await keepMark(ctx, user.id, mark, neverEnds(ctx.now()))
  return { ...made, link, code: link && (await issueCode(ctx, link)), session: null }
}

/** Like an activation. @throws ServiceUnavailableError if another sign-up adds the same passkey at once */
async function passkeyOfActive(ctx: AuthContext, user: UserRecord, { pending }: SignupPasskey): Promise<SignupPasskeyEnd> {
  try {
    return await endSignupPasskey(ctx, user, pending)
  } catch (error) {
    throw error instanceof DuplicateRecordError ? new ServiceUnavailableError({ cause: error }) : error
  }
}

/**
 * Empty without fields, because some adapters do not support host fields. Only a new address reaches the store, so an error of the store
 * would reveal that. So every such value is rejected here. Also rejects a value equal to the password: a column must not get the plain
 * password.
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

/** A form may send the password a second time under another name. */
function withoutPassword({ extra = {}, password }: SignUpInput): Record<string, unknown> {
  return Object.fromEntries(Object.entries(extra).filter(([, value]) => password === undefined || value !== password))
}

function newAccount(ctx: AuthContext, given: NewestSignup, invitation: InvitationRecord | null): NewUser {
  const now = ctx.now()
  const isVerified = invitation?.isMailed ?? false
  const activation = isVerified || ctx.settings.autoActivate ? firstActivation(ctx, { isApproved: true }) : pending
  return newUser(now, { ...given, ...activation, emailVerifiedAt: isVerified ? now : null })
}

const pending = { isActive: false, activatedAt: null }
