import { type AuthContext, passkeysOf } from '../context'
import type { AuthMethod } from '../core/amr'
import type { Locale } from '../http/locale'
import type { UserRecord } from '../store/auth-store'
import { signChallenge } from './challenge'
import type { Login } from './login'
import { needsSecondFactor } from './needs-second-factor'

/** A browser in which a person logged in to one account. A device does not authenticate anybody. */
export interface Device {
  /** Digest of the account's id. With this digest, doorward finds the session of an account in the cookie. */
  readonly account: string
  /** Digest of the account's address. With this digest, doorward finds the device of an account in the cookie without a query. */
  readonly address: string
  /** A random id. The keys of the rate limits of this browser contain the id. */
  readonly id: string
  /** The session of the login. Null if the store keeps no sessions, or if the person logged out of the session in this browser. */
  readonly sessionId: string | null
  /** Digest of the address and of the time when the password was set. If one of them changes, the device becomes invalid. */
  readonly digest: string
  /** When the device expires, in seconds since 1970. */
  readonly end: number
  /** When the person last showed a credential in this browser, in milliseconds since 1970. */
  readonly at: number
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
  /** True: the account has no password, because the person who verified its address took the account over. Ask for a new password. */
  passwordRequired?: true
  /** How many other sessions of the account `maxSessionsPerUser` revoked. Absent: no session was revoked. */
  endedByLimit?: number
  /** The `return_to` of the login: redirect the browser to it. Absent: the login had no `return_to`. */
  returnTo?: string
  /** False: the session begins later, when an app exchanges the code of this login (`oauth-code/`). */
  hasBegun?: false
  /** Returns the entries of the device cookie, the newest first. Called only if the response sets the cookie. */
  devices?: (ctx: AuthContext) => readonly Device[]
  /** The notice to send if the response sets the device cookie. Absent: send no notice. */
  newDevice?: NewDevice
  /**
   * False: the cookies of the session have no Max-Age, so the browser deletes them when it closes. Absent: the browser keeps the cookies.
   */
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
  /** The methods of the first step. */
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
  /** True if the function signs an access token, and so needs the host's claims. */
  readonly takesClaims?: boolean | undefined
}

/** Returns `isPersistent: false` for a session with cookies that end with the browser. Returns an empty object for other sessions. */
export function lasting({ isPersistent }: { isPersistent?: boolean }): { isPersistent?: false } {
  return isPersistent === false ? { isPersistent } : {}
}

/**
 * Finishes a login of any method. Call it inside the transaction that has locked or inserted the active user's row. So a parallel
 * deactivation waits for that transaction, and then revokes the new session. If the account has a second factor that this login did not
 * show, the result is a challenge.
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
 * Returns the user's row from the database. A later step compares a challenge with that row, and the host's table can store less than
 * `user` contains. For example, a column can store only whole seconds, or can be missing.
 */
export async function asStored(ctx: AuthContext, user: UserRecord): Promise<UserRecord> {
  return (await ctx.store.users.find(user.id)) ?? user
}
