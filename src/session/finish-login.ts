import type { AuthMethod } from '../amr'
import type { HostClaims } from '../claims/host-claims'
import { type AuthContext, passkeysOf } from '../context'
import type { Locale } from '../http/locale'
import type { UserRecord } from '../store/auth-store'
import { signChallenge } from './challenge'
import type { Destination } from './destination'
import { needsSecondFactor } from './needs-second-factor'

/** How a person logged in. */
export interface Login {
  readonly amr: readonly AuthMethod[]
  /** The registration key of the provider that verified the person; null if none did. */
  readonly provider: string | null
  /**
   * True if a credential of this login was added to an existing account less than 24 hours ago. It can log in, but the session is not fresh
   * until the person shows another one.
   */
  readonly isYoung?: boolean
  /** The host's claims of the access token. Left out: its hook was not called (`claims-of-login.ts`). */
  readonly claims?: HostClaims
  /** Redirect target after the login; the challenge keeps it. Null or left out: the request names none. */
  readonly destination?: Destination | null
  /** False: the cookies of the session end with the browser (`remember: false`); the challenge keeps it. Default true. */
  readonly isPersistent?: boolean
  /** True if the login set a new password and revoked every earlier session. Then the device cookie of this browser no longer counts. */
  readonly isReset?: true
}

/** A browser in which a person logged in to one account. It authenticates nobody. */
export interface Device {
  /** Digest of the account's address, to find the entry without a query. */
  readonly address: string
  /** Random: the name of this browser's rate limits. */
  readonly id: string
  /** The session of the login. Null if the store keeps none, or if the person logged out of it in this browser. */
  readonly sessionId: string | null
  /** Digest of the password hash and the address. A change of either invalidates the device. */
  readonly digest: string
  /** Seconds since 1970. */
  readonly end: number
}

/** A login in a browser that the account does not know. */
export interface NewDevice {
  readonly user: UserRecord
  readonly locale: Locale
  readonly at: Date
  readonly browser: string | null
  readonly ip: string | null
}

/** A finished login. */
export interface OpenedSession {
  kind: 'session'
  userId: string
  amr: readonly AuthMethod[]
  /** The account has no password, because the person who verified its address took it over. Ask for a new password. */
  passwordRequired?: true
  /** How many other sessions of the account `maxSessionsPerUser` revoked; left out: none. */
  endedByLimit?: number
  /** The `return_to` of the login: redirect the browser there. Left out: the login had none. */
  returnTo?: string
  /** The session begins later, when an app exchanges the code of this login (`oauth-code/`). */
  hasBegun?: false
  /** For the device cookie of the response, the newest first; left out if no cookie is set. */
  devices?: readonly Device[]
  /** The notice to send if the response sets the device cookie; left out: none. */
  newDevice?: NewDevice
  /** The cookies of the session have no Max-Age, so that the browser drops them when it is closed. Left out: it keeps them. */
  isPersistent?: false
}

export interface TokenPair extends OpenedSession {
  accessToken: string
  refreshToken: string
  /** When the refresh token expires without use: the Max-Age of its cookie. */
  refreshTokenExpiresAt: Date
}

export interface LoginChallenge {
  kind: 'challenge'
  userId: string
  /** The first step's methods. */
  amr: readonly AuthMethod[]
  mfaToken: string
  /** The possible methods of the second step, if passkeys are on. */
  mfaMethods?: readonly StepMethod[]
}

/** `otp`: a code of the authenticator app, or a recovery code. */
export type StepMethod = 'otp' | 'passkey'

/** The result of a login: a token pair, or a second-factor challenge. */
export type LoginResult = TokenPair | LoginChallenge

/** Opens the session of a finished login: a token pair, or a server-side session. Runs inside the login's transaction. */
export interface OpenSession<Session extends OpenedSession> {
  (ctx: AuthContext, user: UserRecord, login: Login): Promise<Session>
  /** True if it signs an access token, so that the host's claims are needed. */
  readonly takesClaims?: boolean | undefined
}

/** Returns the member for a session whose cookies end with the browser. */
export function lasting({ isPersistent }: { isPersistent?: boolean }): { isPersistent?: false } {
  return isPersistent === false ? { isPersistent } : {}
}

/**
 * Finishes every login. Runs inside the transaction that has locked the active user's row, or has just inserted it. A deactivation waits
 * for that transaction and then revokes the new session. An account with a second factor that this login has not shown gets a challenge
 * instead of a session.
 */
export async function finishLogin<Session extends OpenedSession>(
  ctx: AuthContext,
  user: UserRecord,
  login: Login,
  open: OpenSession<Session>,
): Promise<Session | LoginChallenge> {
  if (needsSecondFactor(ctx, user, login))
    return {
      kind: 'challenge',
      userId: user.id,
      amr: login.amr,
      mfaToken: signChallenge(ctx, await asStored(ctx, user), login),
      ...(await stepMethodsOf(ctx, user)),
    }
  return open(ctx, user, login)
}

async function stepMethodsOf(ctx: AuthContext, { id }: UserRecord): Promise<Pick<LoginChallenge, 'mfaMethods'>> {
  const passkeys = await passkeysOf(ctx)?.listForUser(id)
  return passkeys ? { mfaMethods: passkeys.length > 0 ? ['otp', 'passkey'] : ['otp'] } : {}
}

/**
 * Returns the user as the database has it. A challenge is compared with that row later, and a host's table may store less of it: whole
 * seconds, or no such column.
 */
export async function asStored(ctx: AuthContext, user: UserRecord): Promise<UserRecord> {
  return (await ctx.store.users.find(user.id)) ?? user
}
