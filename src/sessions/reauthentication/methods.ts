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
  /** By their keys in the option `providers`. Absent in guards without a router. */
  readonly providers?: ReadonlyMap<string, Provider>
  /** Null or absent: no mail can be sent, as in guards without a router. */
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

/** With a second factor that is no longer young, only its code and a passkey count. Empty: the person must log in again. */
export async function methodsOf(ctx: MethodContext, user: UserRecord): Promise<ReauthenticationMethod[]> {
  const code: ReauthenticationMethod[] = hasMatureFactor(ctx, user) ? ['otp'] : []
  const factors = [...code, ...(await passkeyOf(ctx, user))]
  if (needsFactor(ctx, user)) return factors
  const password = takesPassword(ctx, user) ? (['password'] as const) : []
  const email = (await takesMailedCode(ctx, user)) ? (['email'] as const) : []
  return [...password, ...factors, ...email, ...(await providersOf(ctx, user))]
}

/** Each code belongs to a session's row, so the store must keep sessions. */
export function mailsCodes({ mailQueue, store }: Pick<MethodContext, 'mailQueue' | 'store'>): boolean {
  return Boolean(mailQueue && store?.emailLogins && store.sessions)
}

async function takesMailedCode(ctx: MethodContext, user: UserRecord): Promise<boolean> {
  return mailsCodes(ctx) && user.emailVerifiedAt !== null && !(await refusesEmailLink(ctx, user))
}

/** The passkey must not be young. */
async function passkeyOf(ctx: MethodContext, user: UserRecord): Promise<ReauthenticationMethod[]> {
  const passkeys = (ctx.store && (await passkeysOf({ ...ctx, store: ctx.store })?.listForUser(user.id))) ?? []
  return passkeys.some((passkey) => passkeyUsableAt(ctx, { passkey, user }) === null) ? ['passkey'] : []
}

/** The identity must not be young. */
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

/** True if a password alone does not make a session fresh. */
export function needsFactor(ctx: MethodContext, user: UserRecord): boolean {
  return ctx.settings.mfaEnabled && hasMatureFactor(ctx, user)
}

export function takesPassword({ settings }: MethodContext, user: UserRecord): boolean {
  return hasPasswords(settings) && hasPassword(user)
}

/**
 * Counts a password that a person has set, a verified address, another identity and another passkey, if their feature is on. Call it inside
 * the transaction that locks the user's row. Otherwise two removals at once could remove every way to log in.
 */
export async function hasOtherLoginMethod(ctx: AuthContext, user: UserRecord, removed: 'identity' | 'passkey'): Promise<boolean> {
  const { oauthEnabled } = ctx.settings
  if ((hasPasswords(ctx.settings) && hasPassword(user)) || logsInByEmail(ctx, user)) return true
  const identities = oauthEnabled ? ((await ctx.store.identities?.listForUser(user.id)) ?? []).length : 0
  const passkeys = ((await passkeysOf(ctx)?.listForUser(user.id)) ?? []).length
  return identities + passkeys > 1 || (removed === 'identity' ? passkeys : identities) > 0
}

/** False with a `refusesEmailLink` hook: it could reject the mail, and cannot be asked inside a transaction. */
function logsInByEmail({ settings, refusesEmailLink }: AuthContext, user: UserRecord): boolean {
  return settings.emailLogin !== 'off' && user.emailVerifiedAt !== null && refusesEmailLink === null
}

/** A credential is young for `youngCredentialSeconds` after it was added to an existing account. */
interface YoungContext extends Pick<AuthContext, 'now'> {
  readonly settings: Pick<Settings, 'youngCredentialSeconds'>
}

/** Null: it can confirm changes now. `youngCredentialSeconds: 0` means always, even if the host's column rounded the time up. */
export function usableAt({ now, settings: { youngCredentialSeconds } }: YoungContext, addedAt: Date): Date | null {
  const usable = after(addedAt, youngCredentialSeconds)
  return youngCredentialSeconds > 0 && now() < usable ? usable : null
}

/** At once, if the account began with the identity and without a password. Whole seconds, because some hosts' columns have only those. */
export function identityUsableAt(ctx: IdentityContext, user: Birth, linkedAt: Date): Date | null {
  return isBornWith(user, linkedAt) && !hadPassword(ctx, user) ? null : usableAt(ctx, linkedAt)
}

interface OwnPasskey {
  readonly passkey: Pick<PasskeyRecord, 'createdAt'>
  readonly user: Birth
}

/** At once, if the account began with the passkey (`addPendingPasskey`). */
export function passkeyUsableAt(ctx: IdentityContext, { passkey, user }: OwnPasskey): Date | null {
  return identityUsableAt(ctx, user, passkey.createdAt)
}

/** Without the column `password_set_at`, an account with a password may have begun with it: false. */
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

export function refuseYoungPasskey(ctx: IdentityContext, proven: OwnPasskey): void {
  const usable = passkeyUsableAt(ctx, proven)
  if (usable) throw new MfaFactorTooNewError({ details: { usable_at: usable.toISOString() } })
}

export function hasYoungFactor(ctx: YoungContext, user: Pick<UserRecord, 'totpEnabledAt'>): boolean {
  return user.totpEnabledAt !== null && usableAt(ctx, user.totpEnabledAt) !== null
}

export function hasMatureFactor(ctx: YoungContext, user: Pick<UserRecord, 'totpEnabledAt'>): boolean {
  return user.totpEnabledAt !== null && usableAt(ctx, user.totpEnabledAt) === null
}

export function refuseYoungFactor(ctx: YoungContext, user: Pick<UserRecord, 'totpEnabledAt'>): void {
  const usable = user.totpEnabledAt && usableAt(ctx, user.totpEnabledAt)
  if (usable) throw new MfaFactorTooNewError({ details: { usable_at: usable.toISOString() } })
}
