import type { Settings } from '../config/every-setting'
import { hasPassword } from '../passwords/unusable-password'
import { canProveSignIn } from '../providers/new-sign-in'
import type { Provider } from '../providers/passport-provider'
import type { IdentityStore, UserRecord, UserStore } from '../store/auth-store'
import { hasMatureFactor, identityUsableAt } from './young-credential'

/** How a person makes a session fresh. */
export type ReauthenticationMethod = 'password' | 'otp' | 'passkey' | 'email' | `provider:${string}`

export interface MethodContext {
  readonly settings: Pick<Settings, 'localAccountsEnabled' | 'mfaEnabled'>
  readonly now: () => Date
  /** By registration key; absent for guards without a router. */
  readonly providers?: ReadonlyMap<string, Provider>
  readonly store: { readonly users: Pick<UserStore, 'fields'>; readonly identities?: IdentityStore } | null
}

/**
 * Returns what makes a session of this account fresh. Where a second factor is active for 24 hours, only its code does. Empty: the
 * person signs in again.
 */
export async function methodsOf(ctx: MethodContext, user: UserRecord): Promise<ReauthenticationMethod[]> {
  const code: ReauthenticationMethod[] = hasMatureFactor(ctx, user) ? ['otp'] : []
  if (needsFactor(ctx, user)) return code
  return [...(takesPassword(ctx, user) ? (['password'] as const) : []), ...code, ...(await providersOf(ctx, user))]
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
  return settings.localAccountsEnabled && hasPassword(user)
}
