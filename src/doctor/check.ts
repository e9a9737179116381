import type { AuthContext } from '../context'
import { inTime } from '../in-time'
import { withOwnMessage } from '../logger'
import type { AuthRouterOptions } from '../options'

/** `error`: people cannot log in, or there is a security hole. `warning`: everything else. */
export type FindingLevel = 'error' | 'warning'

/** A finding of a check. It contains no secret and no value of a row. */
export interface DoctorFinding {
  /** The stable name of the check (docs/doctor.md). */
  readonly check: string
  readonly level: FindingLevel
  /** What is wrong. */
  readonly what: string
  /** The consequence. */
  readonly why: string
  /** How to fix it. */
  readonly fix: string
}

/** The findings of `auth.doctor()`, and the checks that could not run. */
export interface DoctorReport {
  /** False if there is a finding of level `error`. */
  readonly ok: boolean
  /** Errors first. Empty if there is none. */
  readonly findings: readonly DoctorFinding[]
  readonly skipped: readonly { readonly check: string; readonly why: string }[]
}

/** Facts about your app that only you know. */
export interface DoctorOptions {
  /** Your Express app: its `trust proxy` is checked. */
  readonly app?: {
    /** Returns a setting of the app, as Express does. */
    get(name: string): unknown
  }
  /** How many processes serve the app. Default: more than one in a worker of `node:cluster`, else one. */
  readonly processes?: number
}

/** What the checks examine. */
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

/** True if the URL is on this machine, which no other machine can reach. */
export function isLoopback(address: string): boolean {
  if (!URL.canParse(address)) return false
  const { hostname } = new URL(address)
  return hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]' || /^127\./.test(hostname)
}

/** Returns what another system answers. @throws Error after 4 seconds, which is before the whole check ends */
export function answerOf<T>(question: Promise<T>): Promise<T> {
  return inTime(question, 4_000, () => lateAfter(4))
}

export function lateAfter(seconds: number): Error {
  return withOwnMessage(new Error(`no answer within ${seconds} seconds`))
}
