import type { RequestHandler } from 'express'
import type Joi from 'joi'
import type { LocalizedText } from '../core/errors'
import type { SignupSchema } from './host-schema'

/** The description of a route for the OpenAPI document. The description does not include the body and the handlers before the route. */
export interface Description {
  readonly summary: string
  readonly answers: readonly Answer[]
  /** The errors of the route. The errors of the body and of the handlers before the route are not in this list. */
  readonly refuses?: readonly Refusal[]
  /** True if a hook of the host can send other errors, in the same envelope. */
  readonly hostRefuses?: boolean
  /** How the route sends an error. Default: in the JSON error envelope. */
  readonly refusals?: 'redirect'
  /** True if the route is a page for people, or the form of a page. The OpenAPI document leaves such routes out. */
  readonly isPage?: true
  readonly query?: readonly QueryParameter[]
  /** The host's additional fields in the JSON body. */
  readonly hostsBody?: SignupSchema | undefined
  /** The route itself requires at least one of these fields of the body. A rule of the body's schema is not repeated here. */
  readonly needsOneOf?: readonly string[]
  /** The fields of the body, if the body is a form. */
  readonly form?: Joi.ObjectSchema
  /** The credential that the route itself reads. A guard before the route has its own description. */
  readonly credential?: Credential
  /** The name of a rate limit. Beyond this limit, the route does less work and does not reject the request. */
  readonly limit?: string
}

/** A response that a route itself sends. */
export interface Answer {
  readonly status: 200 | 201 | 202 | 204 | 302 | 303 | 400
  readonly description: string
  /** The schema of a JSON body. */
  readonly schema?: JsonSchema
  readonly isPage?: true
}

/** An error class as clients see the error. */
export interface Refusal {
  readonly status: number
  readonly code: string
  readonly detail: LocalizedText
}

export type Credential = 'access_token' | 'refresh_cookie' | 'session_cookie'

export interface QueryParameter {
  readonly name: string
  readonly description: string
  readonly schema: JsonSchema
  readonly required?: true
}

/**
 * A JSON Schema of draft 2020-12, the version that OpenAPI 3.1 uses. If a schema has a `title`, the OpenAPI document contains
 * the schema only once, under that title.
 */
export interface JsonSchema {
  readonly [keyword: string]: unknown
}

export const string: JsonSchema = { type: 'string' }
export const stringOrNull: JsonSchema = { type: ['string', 'null'] }
export const flag: JsonSchema = { type: 'boolean' }
export const instant: JsonSchema = { type: 'string', format: 'date-time' }
export const instantOrNull: JsonSchema = { type: ['string', 'null'], format: 'date-time' }

/** Returns the schema of an object in which every field is always present. */
export function shape(title: string, properties: Readonly<Record<string, JsonSchema>>): JsonSchema {
  return { title, type: 'object', properties, required: Object.keys(properties) }
}

export const done: Answer = { status: 204, description: 'Done.' }

/** The description of a handler before a route: its errors and its requirements. */
interface StepDescription {
  readonly refuses: readonly Refusal[]
  /** The requirement for the session of the request. */
  readonly needs?: 'alive_session' | 'fresh_session'
  readonly credential?: Credential
  /** The name of the handler's rate limit. */
  readonly limit?: string
}

const steps = new WeakMap<RequestHandler, StepDescription>()

/** Adds a description to a handler, for the OpenAPI document. Returns the handler. */
export function describeStep(step: RequestHandler, description: StepDescription): RequestHandler {
  steps.set(step, description)
  return step
}

export function descriptionOf(step: RequestHandler): StepDescription | null {
  return steps.get(step) ?? null
}
