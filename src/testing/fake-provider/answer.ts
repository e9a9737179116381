import type { FakeHandler } from './fake-provider'

/** A fixed answer: objects go out as JSON, strings as they are. */
export function answer(status: number, content: unknown, headers: Record<string, string> = {}): FakeHandler {
  return (_request, response) => {
    const isText = typeof content === 'string' || Buffer.isBuffer(content)
    response.writeHead(status, { 'content-type': isText ? 'text/html' : 'application/json', ...headers })
    response.end(isText ? content : JSON.stringify(content))
  }
}
