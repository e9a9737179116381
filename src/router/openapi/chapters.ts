import type { AuthContext } from '../../context'
import { sendJsonText } from '../../http/send'
import { type Chapter, openApiDocument } from './document'

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
