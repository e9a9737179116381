import { createHash } from 'node:crypto'
import type { AuthContext } from '../../context'
import type { Settings } from '../../core/config/every-setting'
import { type Credential, type JsonSchema, string } from '../../http/description'
import type { Route } from '../../http/routes'
import { sendJsonText } from '../../http/send'
import { setsTokenCookies } from '../../sessions/delivery'
import { NamedSchemas, operationOf } from './operation'

/** Routes of one topic, with a title for people. */
export interface Chapter {
  readonly name: string
  readonly about: string
  readonly routes: readonly Route[]
}

type DocumentContext = Pick<AuthContext, 'settings' | 'prefix'>

/**
 * Returns the OpenAPI 3.1 document of the mounted routes, without pages. Paths, bodies and errors come from the route table, so that the
 * document describes only what the router does.
 */
function openApiDocument(ctx: DocumentContext, chapters: readonly Chapter[]): object {
  const named = new NamedSchemas()
  named.all.set('Error', errorSchema)
  const schemes = schemesOf(ctx.settings)
  const used = new Set<Credential>()
  const useSchemes = (credential: Credential) => {
    used.add(credential)
    return Object.keys(schemes[credential])
  }
  const operations = chapters.flatMap(({ name: tag, routes }) => {
    const operation = { named, tag, schemesOf: useSchemes }
    return routes
      .filter(({ describes }) => !describes.isPage)
      .map((route) => ({ path: pathOf(route), method: route.method.toLowerCase(), operation: operationOf(operation, route) }))
  })
  const described = {
    servers: [{ url: ctx.prefix }],
    tags: chapters.flatMap(({ name, about, routes }) => (routes.length > 0 ? [{ name, description: about }] : [])),
    paths: pathsOf(operations),
    components: {
      schemas: Object.fromEntries([...named.all].sort(([one], [other]) => (one < other ? -1 : 1))),
      securitySchemes: Object.fromEntries([...used].flatMap((credential) => Object.entries(schemes[credential]))),
    },
  }
  return { openapi: '3.1.1', info: { ...info, version: digestOf(described) }, ...described }
}

const info = {
  title: 'doorward',
  description:
    'Accounts, logins and sessions of this application. Every error is `{ detail, code, details }`. Decide by `code`, because `detail` may change.',
  license: { name: 'MIT', identifier: 'MIT' },
}

/**
 * Returns the document's version. Equal documents have equal versions. The version is a digest, so that the version does not reveal our
 * release.
 */
function digestOf(described: object): string {
  return createHash('sha256').update(JSON.stringify(described)).digest('hex').slice(0, 12)
}

/** The JSON error envelope. */
const errorSchema: JsonSchema = {
  type: 'object',
  properties: { detail: string, code: string, details: { type: 'object' } },
  required: ['detail', 'code', 'details'],
}

function pathOf({ path }: Route): string {
  return path.replace(/:(\w+)/g, '{$1}')
}

function pathsOf(operations: readonly { path: string; method: string; operation: object }[]): object {
  const paths = new Map<string, object>()
  for (const { path, method, operation } of operations) paths.set(path, { ...paths.get(path), [method]: operation })
  return Object.fromEntries(paths)
}

/** Returns the security schemes of each credential. */
function schemesOf({
  tokenDelivery,
  accessCookieName,
  refreshCookieName,
  sessionCookieName,
}: Settings): Record<Credential, Record<string, object>> {
  const cookie = (name: string) => ({ type: 'apiKey', in: 'cookie', name })
  const sessionCookie = { sessionCookie: cookie(sessionCookieName) }
  return {
    access_token:
      tokenDelivery === 'session'
        ? sessionCookie
        : {
            accessToken: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
            ...(setsTokenCookies(tokenDelivery) && { accessCookie: cookie(accessCookieName) }),
          },
    refresh_cookie: { refreshCookie: cookie(refreshCookieName) },
    session_cookie: sessionCookie,
  }
}

/** Adds a chapter for the OpenAPI document itself. Adds nothing if `openapiEnabled` is off. */
export function withOpenApi(ctx: Pick<AuthContext, 'settings' | 'prefix'>, chapters: readonly Chapter[]): readonly Chapter[] {
  if (!ctx.settings.openapiEnabled) return chapters
  let text: string | null = null // made at the first request
  const all: readonly Chapter[] = [
    ...chapters,
    {
      name: 'Description',
      about: 'This document.',
      routes: [
        {
          method: 'GET',
          path: '/openapi.json',
          describes: {
            summary: 'Get the OpenAPI 3.1 document of the mounted routes',
            answers: [{ status: 200, description: 'The document.', schema: { type: 'object' } }],
          },
          handle: (_req, res) => {
            text ??= JSON.stringify(openApiDocument(ctx, all))
            sendJsonText(res, 200, text)
          },
        },
      ],
    },
  ]
  return all
}
