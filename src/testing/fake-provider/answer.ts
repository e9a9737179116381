import type { FakeHandler } from './fake-provider'

/** Returns a handler with a fixed response. The handler sends an object as JSON, and a string unchanged. */
export function answer(status: number, content: unknown, headers: Record<string, string> = {}): FakeHandler {
  return (_request, response) => {
    const isText = typeof content === 'string' || Buffer.isBuffer(content)
    response.writeHead(status, { 'content-type': isText ? 'text/html' : 'application/json', ...headers })
    response.end(isText ? content : JSON.stringify(content))
  }
}
