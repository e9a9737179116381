import type { AuthMethod } from '../amr'
import type { HostClaims } from '../claims/host-claims'
import { type AuthContext, passkeysOf } from '../context'
import type { Locale } from '../http/locale'
import type { UserRecord } from '../store/auth-store'
import { signChallenge } from './challenge'
import type { Destination } from './destination'
import { needsSecondFactor } from './needs-second-factor'

/** How somebody signed in. */
export interface Login {
  readonly amr: readonly AuthMethod[]
  /** The registration key of the provider that vouched for the person; null: none did. */
  readonly provider: string | null
  /**
   * A credential of this login was added to an existing account less than 24 hours ago: it signs in, and the session counts as not
   * fresh until the person shows another one.
   */
  readonly isYoung?: boolean
  /** What the host adds to the access token. Left out: it was not asked (`claims-of-login.ts`). */
  readonly claims?: HostClaims
  /** Where the browser goes in the end; the challenge keeps it. Null or left out: the request names none. */
  readonly destination?: Destination | null
  /** False: the cookies of the session end with the browser (`remember: false`); the challenge keeps it. Default true. */
  readonly isPersistent?: boolean
  /** It set a new password, and ended every earlier session: what this browser is remembered by is of the old one. */
  readonly isReset?: true
}

/** A browser in which somebody finished a login of one account. Opens nothing. */
export interface Device {
  /** A digest of the account's address: finds the entry without a query. */
  readonly address: string
  /** Random: the name of this browser's rate limits. */
  readonly id: string
  /** The session of the login. Null: the store keeps none, or the person logged out of it in this browser. */
  readonly sessionId: string | null
  /** A digest of the password hash and the address: a change of either ends the device. */
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

/** A login with nothing left to show. */
export interface OpenedSession {
  kind: 'session'
  userId: string
  amr: readonly AuthMethod[]
  /** The account has no password any more, because the first proof of its address took it over: ask the person for one. */
  passwordRequired?: true
  /** How many other sessions of the account ended because of `maxSessionsPerUser`; left out: none. */
  endedByLimit?: number
  /** The `return_to` that the login began with: where the browser goes now. Left out: it began without one. */
  returnTo?: string
  /** The session begins later, when an app exchanges the code of this login (`oauth-code/`). */
  hasBegun?: false
  /** For the answer's device cookie, the newest first; left out where nothing sets one. */
  devices?: readonly Device[]
  /** What the person is told where the answer sets the device cookie; left out: nothing. */
  newDevice?: NewDevice
  /** The cookies of the session have no Max-Age, so the browser drops them when it is closed. Left out: it keeps them. */
  isPersistent?: false
}

export interface TokenPair extends OpenedSession {
  accessToken: string
  refreshToken: string
  /** The refresh token's idle end: what a cookie's Max-Age follows. */
  refreshTokenExpiresAt: Date
}

export interface LoginChallenge {
  kind: 'challenge'
  userId: string
  /** The first step's methods. */
  amr: readonly AuthMethod[]
  mfaToken: string
  /** Where passkeys are on: what takes the second step. */
  mfaMethods?: readonly StepMethod[]
}

/** `otp`: a code of the authenticator app, or a recovery code. */
export type StepMethod = 'otp' | 'passkey'

/** How every login ends: a session pair, or a second-factor challenge. */
export type LoginResult = TokenPair | LoginChallenge

/** Begins what a finished login gives: a token pair, or a server-side session. Inside the login's transaction. */
export interface OpenSession<Session extends OpenedSession> {
  (ctx: AuthContext, user: UserRecord, login: Login): Promise<Session>
  /** True: it signs an access token, so the host is asked for its claims. */
  readonly takesClaims?: boolean | undefined
}

/** For a session's result: says so where its cookies end with the browser. */
export function lasting({ isPersistent }: { isPersistent?: boolean }): { isPersistent?: false } {
  return isPersistent === false ? { isPersistent } : {}
}

/**
 * Finishes every login. Runs inside the transaction that has locked the active user's row, or has just inserted it. A deactivation
 * waits for that transaction and then revokes the new session. An account with a second factor that this login has not shown gets a
 * challenge instead of a session.
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

/** A challenge is compared with the row later, and a host's table may keep less of it: whole seconds, or no such column. */
export async function asStored(ctx: AuthContext, user: UserRecord): Promise<UserRecord> {
  return (await ctx.store.users.find(user.id)) ?? user
}
