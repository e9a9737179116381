import type { Request } from 'express'
import type { AuthContext } from '../context'
import type { AuthMethod } from '../core/amr'
import type { Locale } from '../http/locale'
import type { TrustedDeviceRecord, UserRecord } from '../store/auth-store'
import type { HostTypes } from '../store/host-types'
import type { AppDestination, Destination } from './destination'

export interface Login {
  readonly amr: readonly AuthMethod[]
  /** As in the option `providers`. Null: the login used no provider. */
  readonly provider: string | null
  /** `sid` of that provider's id_token. Absent: the provider sent none. */
  readonly providerSid?: string | undefined
  /** True if every credential of this login is young (`youngCredentialSeconds`): it can log in, but does not make a session fresh. */
  readonly isYoung?: boolean
  /** Where the browser goes after the login, also after a second-factor challenge. Null or absent: the request names none. */
  readonly destination?: Destination | null
  /** False: the browser deletes the session's cookies when it closes (`remember: false`). Default true. */
  readonly isPersistent?: boolean
  /** True if the login revoked every session, with a new password or a new second factor. Then this browser's device cookie no longer counts. */
  readonly isReset?: true
  /** As in the session that the login opens, however many steps are between. */
  readonly passwordRequired?: true
  /** True: the host authenticated the person (`openSession`), so `provider` need not be a linked identity. */
  readonly isFromHost?: true
  /** True: the host decided that this login needs no second factor. */
  readonly skipsSecondFactor?: true
  /** The trusted device that stands for the second factor. */
  readonly trust?: TrustedDeviceRecord
  /** True: the person asked to trust this browser, and the second factor suffices for it. Absent: the route trusts no browser. */
  readonly trustsDevice?: boolean | undefined
  /** True if the browser is known to the account. Absent: a call without a request, which never owes a code for the device. */
  readonly isKnownDevice?: (ctx: AuthContext) => Promise<boolean>
  /** True if the person is signed in already: tasks wait for the next login. */
  readonly goesOn?: true
  /** Of a login that goes on after a task (`login-tasks/`). */
  readonly tasks?: LoginProgress
}

/** What a login did after it had proved its person. */
export interface LoginProgress {
  /** Random. It names the login in what its steps begin. */
  readonly id: string
  /** The keys of the tasks that were done. */
  readonly done: readonly string[]
  /** No step moves it. */
  readonly endsAt: Date
  /** True: the first answer found a known device, or the login had no request. */
  readonly isDeviceSettled: boolean
  /** The row of the mailed code. Null: none. */
  readonly codeId: string | null
}

export interface LoginClient {
  /** An app gets a code, and exchanges it for tokens. */
  readonly gets: 'tokens' | 'session' | AppDestination
  readonly origin: SessionOrigin
  /** Gets the device cookie. Absent: the response sets no device cookie, and no notice names the browser. */
  readonly browser?: LoginBrowser
  /** The language of a mail that the login causes. Absent: `defaultLocale`. */
  readonly locale?: Locale
}

export interface LoginBrowser {
  readonly req: Request
  /** False: another site may have caused the login, so the entry in the device cookie proves nothing. */
  readonly namesSession: boolean
}

/** The client of a new session. The owner recognizes the session in a list by `ip` and `userAgent`. */
export interface SessionOrigin {
  /** The IP address of the client. doorward stores at most 45 characters. */
  ip?: string | null | undefined
  /** The header `User-Agent`. doorward stores at most 512 characters. */
  userAgent?: string | null | undefined
  /** The session cookie of the request. A login with a server-side session revokes its session, even of another account. */
  sessionToken?: string | null | undefined
}

/** A browser in which a person logged in to one account. A device does not authenticate anybody. */
export interface Device {
  /** Digest of the account's id: finds the session of an account in the cookie. */
  readonly account: string
  /** Digest of the account's address: finds the device of an account without a query. */
  readonly address: string
  /** Random. The rate limits of this browser have it in their keys. */
  readonly id: string
  /** Null if the store keeps no sessions, or if the person logged out of the session in this browser. */
  readonly sessionId: string | null
  /** Digest of the address and of the time when the password was set: a change of either invalidates the device. */
  readonly digest: string
  /** Seconds since 1970. */
  readonly end: number
  /** When the person last showed a credential in this browser, in milliseconds since 1970. */
  readonly at: number
}

export interface NewDevice {
  readonly user: UserRecord
  readonly locale: Locale
  readonly at: Date
  readonly browser: string | null
  readonly ip: string | null
}

/** The trust of one account in the cookie of a browser. */
export interface TrustEntry extends Pick<Device, 'account'> {
  /** 256 random bits. Never changes. */
  readonly token: string
  /** Seconds since 1970. */
  readonly end: number
}

/** A browser that was just trusted, and what its cookie then contains. */
export interface NewTrust extends NewDevice {
  readonly entries: readonly TrustEntry[]
}

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
  /** False: the session begins later, when an app exchanges the code of this login (`social/app-redirect`). */
  hasBegun?: false
  /** Newest first. Called only if the response sets the device cookie. */
  devices?: (ctx: AuthContext) => readonly Device[]
  /** The notice to send if the response sets the device cookie. Absent: send no notice. */
  newDevice?: NewDevice
  /** True: this login trusted the browser. Absent: `trustedDeviceDays` is 0, or the login cannot trust a browser. */
  deviceTrusted?: boolean
  /** For the cookie and the notice of a browser that was just trusted. */
  newTrust?: NewTrust
  /**
   * False: the cookies of the session have no Max-Age, so the browser deletes them when it closes. Absent: the browser keeps the cookies.
   */
  isPersistent?: false
}

export interface TokenPair extends OpenedSession {
  accessToken: string
  refreshToken: string
  refreshTokenExpiresAt: Date
}

/** The result of a login with a server-side session. */
export interface OpenedServerSession extends OpenedSession {
  /** Identifies the session in lists. The id is not a credential. */
  sessionId: string
  /** The cookie's value. The response sends it once, and doorward never stores it. */
  sessionToken: string
  expiresAt: Date
}

export interface AppCode extends OpenedSession {
  hasBegun: false
  code: string
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

/** The login proved its person, and owes these tasks before its session begins. `taskToken` is good for one step of the first task. */
export interface LoginOwesTasks {
  kind: 'tasks'
  userId: string
  tasks: readonly string[]
  taskToken: string
}

export type AnyLoginResult = TokenPair | OpenedServerSession | AppCode | LoginChallenge | LoginOwesTasks

/** The result of a login: a token pair, a second-factor challenge, or the tasks that it owes. */
export type LoginResult = TokenPair | LoginChallenge | LoginOwesTasks

export type SessionLoginResult = OpenedServerSession | LoginChallenge | LoginOwesTasks

/** The result of a login method of the service. */
export type LoginResultOf<Host extends HostTypes> = Host extends { delivery: 'session' } ? SessionLoginResult : LoginResult
