import { refusesEmailLink } from '../../accounts/email-links/email-link'
import { type AuthContext, passkeysOf } from '../../context'
import { hasPasswords, type Settings } from '../../core/config/every-setting'
import { MfaFactorTooNewError } from '../../core/errors'
import { hasPassword } from '../../passwords/verify-password'
import { canVerifySignIn } from '../../providers/id-token'
import type { Provider } from '../../providers/passport-provider'
import type {
  EmailLoginStore,
  IdentityStore,
  PasskeyRecord,
  PasskeyStore,
  SessionStore,
  UserRecord,
  UserStore,
} from '../../store/auth-store'
import { after } from '../find-session'

type ReauthenticationMethod = 'password' | 'otp' | 'passkey' | 'email' | `provider:${string}`

export interface MethodContext {
  readonly settings: Pick<
    Settings,
    'localAccountsEnabled' | 'passwordLogin' | 'mfaEnabled' | 'passkeysEnabled' | 'freshSessionSeconds' | 'youngCredentialSeconds'
  >
  readonly now: () => Date
  /** The router's providers by their keys in the option `providers`. Absent in guards without a router. */
  readonly providers?: ReadonlyMap<string, Provider>
  /** Sends the mails. Null or absent: no mail can be sent. Absent in guards without a router. */
  readonly mailQueue?: AuthContext['mailQueue']
  readonly refusesEmailLink?: AuthContext['refusesEmailLink']
  readonly store: {
    readonly users: Pick<UserStore, 'fields'>
    readonly identities?: IdentityStore
    readonly passkeys?: PasskeyStore
    readonly emailLogins?: EmailLoginStore
    readonly sessions?: SessionStore
  } | null
}

/**
 * Returns the ways to make a session of this account fresh. If a second factor is active and no longer young, only its code and a passkey
 * count. If the list is empty, the person must log in again.
 */
export async function methodsOf(ctx: MethodContext, user: UserRecord): Promise<ReauthenticationMethod[]> {
  const code: ReauthenticationMethod[] = hasMatureFactor(ctx, user) ? ['otp'] : []
  const factors = [...code, ...(await passkeyOf(ctx, user))]
  if (needsFactor(ctx, user)) return factors
  const password = takesPassword(ctx, user) ? (['password'] as const) : []
  const email = (await takesMailedCode(ctx, user)) ? (['email'] as const) : []
  return [...password, ...factors, ...email, ...(await providersOf(ctx, user))]
}

/**
 * Returns true if the app can mail codes that confirm a session. The store must keep sessions, because each code belongs to a session's
 * row.
 */
export function mailsCodes({ mailQueue, store }: Pick<MethodContext, 'mailQueue' | 'store'>): boolean {
  return Boolean(mailQueue && store?.emailLogins && store.sessions)
}

async function takesMailedCode(ctx: MethodContext, user: UserRecord): Promise<boolean> {
  return mailsCodes(ctx) && user.emailVerifiedAt !== null && !(await refusesEmailLink(ctx, user))
}

/** Returns `passkey` if the account has a passkey that is no longer young. */
async function passkeyOf(ctx: MethodContext, user: UserRecord): Promise<ReauthenticationMethod[]> {
  const passkeys = (ctx.store && (await passkeysOf({ ...ctx, store: ctx.store })?.listForUser(user.id))) ?? []
  return passkeys.some(({ createdAt }) => usableAt(ctx, createdAt) === null) ? ['passkey'] : []
}

/**
 * Returns the providers at which the person can log in again to make the session fresh. The identity must
 * not be young.
 */
async function providersOf(ctx: MethodContext, user: UserRecord): Promise<`provider:${string}`[]> {
  const { providers, store } = ctx
  if (!providers || providers.size === 0 || !store?.identities) return []
  const linked = await store.identities.listForUser(user.id)
  const usable = linked.filter((identity) => {
    const client = providers.get(identity.provider)
    return client !== undefined && canVerifySignIn(client) && identityUsableAt(ctx, user, identity.createdAt) === null
  })
  return usable.map(({ provider }) => `provider:${provider}` as const)
}

/** Returns true if a password alone does not make a session fresh. */
export function needsFactor(ctx: MethodContext, user: UserRecord): boolean {
  return ctx.settings.mfaEnabled && hasMatureFactor(ctx, user)
}

/** Returns true if the account has a usable password and passwords are on. */
export function takesPassword({ settings }: MethodContext, user: UserRecord): boolean {
  return hasPasswords(settings) && hasPassword(user)
}

/**
 * Returns true if the account can still log in after one identity or one passkey is removed. These other ways count
 * if their feature is on: a password that a person has set, a verified address, another identity, another passkey. Call the function inside
 * the transaction that locks the user's row. Otherwise two removals at once could remove every way to log in.
 */
export async function hasOtherLoginMethod(ctx: AuthContext, user: UserRecord, removed: 'identity' | 'passkey'): Promise<boolean> {
  const { oauthEnabled } = ctx.settings
  if ((hasPasswords(ctx.settings) && hasPassword(user)) || logsInByEmail(ctx, user)) return true
  const identities = oauthEnabled ? ((await ctx.store.identities?.listForUser(user.id)) ?? []).length : 0
  const passkeys = ((await passkeysOf(ctx)?.listForUser(user.id)) ?? []).length
  return identities + passkeys > 1 || (removed === 'identity' ? passkeys : identities) > 0
}

/**
 * Returns true if the account can surely log in by email. Returns false if the host has a `refusesEmailLink` hook, because the hook could
 * reject the mail. The function cannot ask the hook inside a transaction.
 */
function logsInByEmail({ settings, refusesEmailLink }: AuthContext, user: UserRecord): boolean {
  return settings.emailLogin !== 'off' && user.emailVerifiedAt !== null && refusesEmailLink === null
}

/** A credential is young for `youngCredentialSeconds` after it was added to an existing account. */
interface YoungContext extends Pick<AuthContext, 'now'> {
  readonly settings: Pick<Settings, 'youngCredentialSeconds'>
}

/**
 * Returns the time when a young credential can confirm changes. Returns null if the credential can already confirm changes. With
 * `youngCredentialSeconds: 0`, every credential can, even if the host's column rounded the time of the addition up.
 */
export function usableAt({ now, settings: { youngCredentialSeconds } }: YoungContext, addedAt: Date): Date | null {
  const usable = after(addedAt, youngCredentialSeconds)
  return youngCredentialSeconds > 0 && now() < usable ? usable : null
}

/**
 * Returns the time when an identity can confirm changes. If the account was created with the identity, the identity can confirm changes at
 * once. If the account was created with a password, the identity was added later. The function compares whole seconds, because the
 * columns of some hosts store only whole seconds.
 */
export function identityUsableAt(ctx: IdentityContext, user: Birth, linkedAt: Date): Date | null {
  return isBornWith(user, linkedAt) && !hadPassword(ctx, user) ? null : usableAt(ctx, linkedAt)
}

/**
 * Returns true if a social login created the account with this identity. If the table has no column `password_set_at`, an account that has
 * a password may have begun with it, so the function returns false.
 */
export function isCreatedWith(
  ctx: Pick<IdentityContext, 'store'>,
  user: Birth & Pick<UserRecord, 'hashedPassword'>,
  linkedAt: Date,
): boolean {
  return isBornWith(user, linkedAt) && !hadPassword(ctx, user) && (saysWhen(ctx) || !hasPassword(user))
}

type Birth = Pick<UserRecord, 'createdAt' | 'passwordSetAt'>

function isBornWith({ createdAt }: Birth, at: Date): boolean {
  return Math.floor(at.getTime() / 1000) <= Math.floor(createdAt.getTime() / 1000)
}

function hadPassword(ctx: Pick<IdentityContext, 'store'>, user: Birth): boolean {
  return saysWhen(ctx) && user.passwordSetAt !== null && isBornWith(user, user.passwordSetAt)
}

function saysWhen({ store }: Pick<IdentityContext, 'store'>): boolean {
  return store?.users.fields.has('passwordSetAt') === true
}

interface IdentityContext extends YoungContext {
  readonly store: { readonly users: Pick<UserStore, 'fields'> } | null
}

/**
 * Rejects a young passkey. New accounts have no exception, because no account is created with a passkey.
 * @throws MfaFactorTooNewError
 */
export function refuseYoungPasskey(ctx: YoungContext, { createdAt }: Pick<PasskeyRecord, 'createdAt'>): void {
  const usable = usableAt(ctx, createdAt)
  if (usable) throw new MfaFactorTooNewError({ details: { usable_at: usable.toISOString() } })
}

/** Returns true if the account's second factor is active and young. */
export function hasYoungFactor(ctx: YoungContext, user: Pick<UserRecord, 'totpEnabledAt'>): boolean {
  return user.totpEnabledAt !== null && usableAt(ctx, user.totpEnabledAt) !== null
}

/** Returns true if the account's second factor is active and no longer young. */
export function hasMatureFactor(ctx: YoungContext, user: Pick<UserRecord, 'totpEnabledAt'>): boolean {
  return user.totpEnabledAt !== null && usableAt(ctx, user.totpEnabledAt) === null
}

/**
 * Rejects an account if its second factor is young.
 * @throws MfaFactorTooNewError
 */
export function refuseYoungFactor(ctx: YoungContext, user: Pick<UserRecord, 'totpEnabledAt'>): void {
  const usable = user.totpEnabledAt && usableAt(ctx, user.totpEnabledAt)
  if (usable) throw new MfaFactorTooNewError({ details: { usable_at: usable.toISOString() } })
}
