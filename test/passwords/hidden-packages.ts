import Module from 'node:module'

type Load = (this: unknown, name: string, ...rest: unknown[]) => unknown

// Where every `require` goes through; not among the types of node:module.
const loader = Module as unknown as { _load: Load }
const load = loader._load

const absent = '-which-is-not-installed'

/** From here on, `require` says of these packages what it says where they are not installed: Node's own error. */
export function hidePackages(...names: string[]): void {
  loader._load = function (name, ...rest) {
    if (!names.includes(name)) return load.call(this, name, ...rest)
    try {
      return load.call(this, `${name}${absent}`, ...rest)
    } catch (error) {
      if (error instanceof Error) error.message = error.message.replaceAll(absent, '')
      throw error
    }
  }
}

export function showPackages(): void {
  loader._load = load
}
