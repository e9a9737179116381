import { type AuthContext, trustedStore } from './context'
import type { Locale } from './http/locale'
import type { OAuthUser } from './providers/provider-client'
import type { LoginResult } from './session/finish-login'
import { logOut } from './session/log-out'
import { refresh } from './session/refresh'
import { listIdentities, unlinkIdentity } from './social/identities'
import { linkIdentity } from './social/link-identity'
import { logInWithIdentity } from './social/log-in-with-identity'
import type { AuthStore, IdentityRecord } from './store/auth-store'

/** The routes' operations without HTTP, for the host's jobs and transactions. They throw the same errors. */
export interface AuthService {
  /** `profile.provider` is the registration key. Believes the profile: verify it first. */
  logInWithIdentity(profile: OAuthUser, options?: { locale?: Locale }): Promise<LoginResult>
  refresh(refreshToken: string): Promise<LoginResult>
  logOut(refreshToken: string, options?: { allSessions?: boolean }): Promise<void>
  /** Oldest first. */
  listIdentities(userId: string): Promise<IdentityRecord[]>
  unlinkIdentity(userId: string, provider: string): Promise<void>
  /** Links a profile whoever it is of, so verify first that the account's owner asked. The one linked before: returned as it is. */
  linkIdentity(userId: string, profile: OAuthUser): Promise<IdentityRecord>
  /**
   * The same operations inside the host's own transaction: `service.using(store.using(trx))`. The host commits or rolls
   * back, also what a refusal would have kept; events fire when an operation ends, before the host commits.
   */
  using(store: AuthStore): AuthService
}

export function createService(ctx: AuthContext): AuthService {
  return {
    logInWithIdentity: (profile, options) => logInWithIdentity(ctx, profile, options),
    refresh: (refreshToken) => refresh(ctx, refreshToken),
    logOut: (refreshToken, options) => logOut(ctx, refreshToken, options),
    listIdentities: (userId) => listIdentities(ctx, userId),
    unlinkIdentity: (userId, provider) => unlinkIdentity(ctx, userId, provider),
    linkIdentity: async (userId, profile) => (await linkIdentity(ctx, userId, profile)).identity,
    using: (store) => createService({ ...ctx, store: trustedStore(store, ctx.logger) }),
  }
}
