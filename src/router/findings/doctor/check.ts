import type { AuthContext } from '../../../context'
import { withOwnMessage } from '../../../core/logger'
import { withTimeout } from '../../../core/with-timeout'
import type { AuthRouterOptions } from '../../../options'

/** `error`: people cannot log in, or there is a security hole. `warning`: any other finding. */
export type FindingLevel = 'error' | 'warning'

/** A finding of a check. The finding contains no secret and no value of a row. */
export interface DoctorFinding {
  /** The stable name of the check (docs/doctor.md). */
  readonly check: string
  readonly level: FindingLevel
  /** What is wrong. */
  readonly what: string
  /** The consequence. */
  readonly why: string
  /** How to fix the fault. */
  readonly fix: string
}

/** The findings of `auth.doctor()`, and the checks that could not run. */
export interface DoctorReport {
  /** False if there is a finding of level `error`. */
  readonly ok: boolean
  /** The errors come first. The list is empty if there is no finding. */
  readonly findings: readonly DoctorFinding[]
  readonly skipped: readonly { readonly check: string; readonly why: string }[]
  /** When the last purge ended, of whichever process. Absent: unknown. */
  readonly lastPurgeAt?: Date
}

/** Facts about your app that the library cannot know. */
export interface DoctorOptions {
  /** Your Express app. The doctor checks its setting `trust proxy`. */
  readonly app?: {
    /** Returns a setting of the app, as in Express. */
    get(name: string): unknown
  }
  /** How many processes serve the app. Default: 1, or 2 in a worker of `node:cluster`. */
  readonly processes?: number
}

/** The data that the checks examine. */
export interface Patient {
  readonly ctx: AuthContext
  readonly options: AuthRouterOptions
  readonly isProduction: boolean
  readonly about: DoctorOptions
}

export type Fault = Omit<DoctorFinding, 'check'>
/** Why a check could not run. */
export interface Skip {
  readonly skipped: string
}

export interface Check {
  readonly name: string
  /** Returns null if there is no fault. */
  readonly examine: (patient: Patient) => Result | Promise<Result>
}

export type Result = Fault | readonly Fault[] | Skip | null

export function error(what: string, why: string, fix: string): Fault {
  return { level: 'error', what, why, fix }
}

export function warning(what: string, why: string, fix: string): Fault {
  return { level: 'warning', what, why, fix }
}

/** Returns true if the URL names this machine. Other machines cannot reach such a URL. */
export function isLoopback(address: string): boolean {
  if (!URL.canParse(address)) return false
  const { hostname } = new URL(address)
  return hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]' || /^127\./.test(hostname)
}

/**
 * Returns the answer of another system, such as the database.
 * @throws Error after 4 seconds, because a check has only 5 seconds
 */
export function answerOf<T>(question: Promise<T>): Promise<T> {
  return withTimeout(question, 4_000, () => lateAfter(4))
}

export function lateAfter(seconds: number): Error {
  return withOwnMessage(new Error(`no answer within ${seconds} seconds`))
}
