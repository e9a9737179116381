import type { Settings } from '../config/every-setting'
import { hasPasswords } from '../config/has-passwords'
import { type AuthContext, passkeysOf } from '../context'
import { refusesEmailLink } from '../mailbox/refuses-email-link'
import { hasPassword } from '../passwords/unusable-password'
import { canProveSignIn } from '../providers/new-sign-in'
import type { Provider } from '../providers/passport-provider'
import type { EmailLoginStore, IdentityStore, PasskeyStore, SessionStore, UserRecord, UserStore } from '../store/auth-store'
import { hasMatureFactor, identityUsableAt, usableAt } from './young-credential'

/** How a person makes a session fresh. */
export type ReauthenticationMethod = 'password' | 'otp' | 'passkey' | 'email' | `provider:${string}`

export interface MethodContext {
  readonly settings: Pick<Settings, 'localAccountsEnabled' | 'passwordLogin' | 'mfaEnabled' | 'passkeysEnabled'>
  readonly now: () => Date
  /** By registration key; absent for guards without a router. */
  readonly providers?: ReadonlyMap<string, Provider>
  /** Null, and absent for guards without a router: nothing is mailed. */
  readonly postman?: AuthContext['postman']
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
 * Returns what makes a session of this account fresh. Where a second factor is active for 24 hours, only its code and a passkey do. Empty:
 * the person signs in again.
 */
export async function methodsOf(ctx: MethodContext, user: UserRecord): Promise<ReauthenticationMethod[]> {
  const code: ReauthenticationMethod[] = hasMatureFactor(ctx, user) ? ['otp'] : []
  const factors = [...code, ...(await passkeyOf(ctx, user))]
  if (needsFactor(ctx, user)) return factors
  const password = takesPassword(ctx, user) ? (['password'] as const) : []
  const email = (await takesMailedCode(ctx, user)) ? (['email'] as const) : []
  return [...password, ...factors, ...email, ...(await providersOf(ctx, user))]
}

/** True where codes are mailed that confirm a session: they are bound to its row. */
export function mailsCodes({ postman, store }: Pick<MethodContext, 'postman' | 'store'>): boolean {
  return Boolean(postman && store?.emailLogins && store.sessions)
}

async function takesMailedCode(ctx: MethodContext, user: UserRecord): Promise<boolean> {
  return mailsCodes(ctx) && user.emailVerifiedAt !== null && !(await refusesEmailLink(ctx, user))
}

/** One that was added less than 24 hours ago confirms nobody. */
async function passkeyOf(ctx: MethodContext, user: UserRecord): Promise<ReauthenticationMethod[]> {
  const passkeys = (ctx.store && (await passkeysOf({ ...ctx, store: ctx.store })?.listForUser(user.id))) ?? []
  return passkeys.some(({ createdAt }) => usableAt(ctx, createdAt) === null) ? ['passkey'] : []
}

/** The providers of linked identities that can prove a new sign-in. One that was linked less than 24 hours ago confirms nobody. */
async function providersOf(ctx: MethodContext, user: UserRecord): Promise<`provider:${string}`[]> {
  const { providers, store } = ctx
  if (!providers || providers.size === 0 || !store?.identities) return []
  const linked = await store.identities.listForUser(user.id)
  const usable = linked.filter((identity) => {
    const client = providers.get(identity.provider)
    return client !== undefined && canProveSignIn(client) && identityUsableAt(ctx, user, identity.createdAt) === null
  })
  return usable.map(({ provider }) => `provider:${provider}` as const)
}

/** True where a password alone does not make a session fresh. */
export function needsFactor(ctx: MethodContext, user: UserRecord): boolean {
  return ctx.settings.mfaEnabled && hasMatureFactor(ctx, user)
}

/** True where the account has a password that somebody knows, and passwords are on. */
export function takesPassword({ settings }: MethodContext, user: UserRecord): boolean {
  return hasPasswords(settings) && hasPassword(user)
}
