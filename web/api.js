// api.js: asks the server. The browser keeps answers and asks again with their tag.

export class ApiError extends Error {
    constructor(status, detail) {
        super(detail);
        this.status = status;
    }
}

/** The JSON of /api/v1/<path>; throws ApiError, with status 0 when the server cannot be reached. */
export async function get(path, parameters, signal) {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(parameters ?? {}))
        if (value !== null && value !== undefined) query.set(name, value);
    const text = query.toString();
    let response;
    try {
        response = await fetch(`api/v1/${path}${text ? `?${text}` : ""}`, { signal });
    } catch (error) {
        if (error.name === "AbortError") throw error;
        throw new ApiError(0, "The server cannot be reached. Is gate-server running?");
    }
    let body = null;
    try {
        body = await response.json();
    } catch (error) {
        if (error.name === "AbortError") throw error;
    }
    if (!response.ok || body === null)
        throw new ApiError(response.status,
            body?.detail ?? `The server answered ${response.status}.`);
    return body;
}
