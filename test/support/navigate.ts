import { request } from 'node:http'

/**
 * A GET as a browser's address bar sends it, without following redirects. Node's `fetch` would say `Sec-Fetch-Mode: cors`, and lets nobody
 * say otherwise.
 */
export function navigate(url: URL | string, headers: Record<string, string> = {}): Promise<Response> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { headers: { 'sec-fetch-mode': 'navigate', ...headers } }, (incoming) => {
      const chunks: Buffer[] = []
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
      incoming.on('error', reject)
      incoming.on('end', () => {
        const answered = new Headers()
        for (const [name, values = []] of Object.entries(incoming.headersDistinct)) for (const value of values) answered.append(name, value)
        const body = chunks.length > 0 ? Buffer.concat(chunks) : null
        resolve(new Response(body, { status: incoming.statusCode ?? 0, headers: answered }))
      })
    })
    outgoing.on('error', reject).end()
  })
}
