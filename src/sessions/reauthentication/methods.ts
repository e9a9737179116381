import { refusesEmailLink } from '../../accounts/email-links/refuses-email-link'
import { type AuthContext, passkeysOf } from '../../context'
import type { Settings } from '../../core/config/every-setting'
import { hasPasswords } from '../../core/config/has-passwords'
import { hasPassword } from '../../passwords/unusable-password'
import { canVerifySignIn } from '../../providers/new-sign-in'
import type { Provider } from '../../providers/passport-provider'
import type { EmailLoginStore, IdentityStore, PasskeyStore, SessionStore, UserRecord, UserStore } from '../../store/auth-store'
import { hasMatureFactor, identityUsableAt, usableAt } from './credential-age'

export type ReauthenticationMethod = 'password' | 'otp' | 'passkey' | 'email' | `provider:${string}`

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
